"""What exhibits are made from."""

from xlgrid.papers.pfeiffer2020.parameters import Parameters
from xlgrid.plan.plan import Plan
from xlgrid.products.exhibits import Exhibit
from xlgrid.study.encoders import HubEncoder


def test_a_count_of_parameters_reads_the_encoders_whose_sizes_are_not_known_without_them(plan: Plan) -> None:
    encoders = plan.study.encoders | {"base": HubEncoder(hub="FacebookAI/xlm-roberta-base")}
    sizes = Parameters(title="Sizes", encoders=("tiny", "mine", "base"), methods=("full-ft",))
    changed = Plan(plan.study.model_copy(update={"encoders": encoders, "exhibits": {"sizes": sizes}}))
    files = [f"results/tiny/encoders/{name}/model.safetensors" for name in ("tiny", "mine")]
    assert Exhibit("tiny", "sizes").inputs(changed)["encoders"] == files
