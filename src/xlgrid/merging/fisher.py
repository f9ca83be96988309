"""The mean that is weighted by Fisher information."""

from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field, PositiveFloat, PositiveInt

from xlgrid.heads.transfer import on_device
from xlgrid.merging.operation import Parameter
from xlgrid.merging.operations import Mean

if TYPE_CHECKING:
    import torch

    from xlgrid.merging.member import Member


class Fisher(Mean):
    """The mean weighted by the diagonal of the Fisher information, θ = Σ w_i F_i θ_i / Σ w_i F_i (Matena and Raffel 2022).

    F_i is the mean of the squared gradients of log p(y | x) over training examples of member i. The labels y are those of the data,
    which makes F_i the empirical Fisher information; the paper takes the expectation over labels that the model predicts. Dropout
    is off. The head is merged like the other parameters.
    """

    examples: PositiveInt = Field(
        256, description="the number of training examples, which are drawn with the seed of each run"
    )
    floor: PositiveFloat = Field(1e-6, description="smaller values of F_i count as this, so that no sum is 0")

    def reads(self, member: Any, plan: Any) -> list[Any]:
        return list(member.tokens(plan, "train"))

    @property
    def gradients(self) -> int:
        return self.examples

    def fact(self, member: "Member") -> "dict[str, torch.Tensor]":
        """F_i of each parameter that the run stores, in float64."""
        import torch

        from xlgrid.data import batches
        from xlgrid.evaluation import trained
        from xlgrid.heads import ALL_HEADS
        from xlgrid.models import deltas, first_token, load, prediction

        run = trained.read(member.folder)
        parts = [batches.read(*part) for part in zip(member.tokens, run.recipe.train_parts, strict=True)]
        tokens = batches.mix(parts, run.recipe.training.mix_seed, run.recipe.mix)
        head = ALL_HEADS.find(tokens.head)
        model = trained.model_of(run, member.encoder, tokens, deltas.start_of(run.folder, run.record)).eval()
        first_token.read_first_token(model, head)
        segments = trained.placed(model, run.recipe.training)[-1] and load.has_segments(model)
        parameters = {name: p for name, p in deltas.named_parameters(model).items() if name in member.shapes}
        model.requires_grad_(False)
        for parameter in parameters.values():
            parameter.requires_grad_()
        totals = {name: torch.zeros(p.shape, dtype=torch.float64, device=p.device) for name, p in parameters.items()}
        # The masks of MLM runs are drawn with torch's generator.
        torch.manual_seed(run.recipe.seed)
        drawn = np.random.default_rng(run.recipe.seed).permutation(len(tokens))[: self.examples]
        for row in drawn:
            rows = np.array([row])
            batch = on_device(head.collate(tokens, rows, segments), model.device)
            batch |= prediction.extras(model, run.method, tokens, rows, training=False)
            model.zero_grad(set_to_none=True)
            torch.stack([*head.losses(model, batch).values()]).sum().backward()
            for name, parameter in parameters.items():
                if parameter.grad is not None:
                    totals[name] += parameter.grad.double() ** 2
        return {name: (total / len(drawn)).cpu() for name, total in totals.items()}

    def merge(self, of: Parameter) -> "torch.Tensor":
        import torch

        none = torch.zeros_like(of.first)
        of_members = (fact[of.name].flatten()[of.at] if of.name in fact else none for fact in of.facts)
        information = [each.clamp(min=self.floor) for each in of_members]
        total = of.sum(each * value for each, value in zip(information, of.values, strict=True))
        return total / of.sum(information)

    def merge_head(self, of: Parameter) -> "torch.Tensor":
        return self.merge(of)
