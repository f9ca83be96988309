"""The biaffine parser, held against the equations of Dozat and Manning (2017) written out in double precision."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from models_fixture import FAMILIES, IDS, POSITIONS
from torch import nn
from transformers import AutoModel, ElectraConfig

from xlgrid.heads import HEADS
from xlgrid.heads.parsing.biaffine import Biaffine, parser_class
from xlgrid.models.load import load_model, new_model

SIZE, LABELS, WORDS = 6, 3, 4
HEAD: Any = HEADS["parse"]


def parser(arc: int, relation: int) -> Biaffine:
    torch.manual_seed(1)
    made = Biaffine(SIZE, LABELS, arc, relation, 0.0)
    for parameter in made.parameters():
        nn.init.normal_(parameter)
    return made


def reduced(layers: nn.Module, vector: np.ndarray) -> np.ndarray:
    for layer in layers.children():
        if isinstance(layer, nn.Linear):
            vector = layer.weight.double().numpy() @ vector + layer.bias.double().numpy()
            vector = np.where(vector > 0, vector, 0.1 * vector)
    return vector


@pytest.mark.parametrize(("arc", "relation"), [(5, 2), (0, 0), (5, 0)])
@torch.no_grad()
def test_scores_are_those_of_the_equations(arc: int, relation: int) -> None:
    made = parser(arc, relation)
    states = torch.randn(2, WORDS + 1, SIZE)
    vectors = made(states)
    present = torch.ones(2, WORDS + 1, dtype=torch.bool)
    present[1, WORDS] = False
    heads = torch.tensor([[0, 1, 4, 1], [2, 0, 1, 0]])
    arcs, relations = made.arcs(vectors, present), made.relations(vectors, heads)
    weight = {name: value.double().numpy() for name, value in made.named_parameters()}
    for row in range(2):
        h = [[reduced(layers, word) for word in states[row].double().numpy()] for layers in made.reduce]
        for word in range(1, WORDS + 1):
            for head in range(WORDS + 1):
                score = arcs[row, word - 1, head]
                if head == word or not present[row, head]:
                    assert score == -torch.inf
                else:
                    expected = (
                        h[1][head] @ weight["arc.weight"] @ h[0][word] + weight["arc_head.weight"][0] @ h[1][head]
                    )
                    assert score.item() == pytest.approx(expected, rel=1e-4, abs=1e-4)
            above = h[3][int(heads[row, word - 1])]
            for label in range(LABELS):
                own = weight["relation.weight"].reshape(LABELS, len(above), -1)[label]
                expected = above @ own @ h[2][word] + weight["relation_both.bias"][label]
                expected += weight["relation_both.weight"][label] @ np.concatenate([above, h[2][word]])
                assert relations[row, word - 1, label].item() == pytest.approx(expected, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("family", FAMILIES)
@torch.no_grad()
def test_the_vector_of_a_word_is_the_weighted_sum_of_its_tokens_in_the_last_layer(family: str, tmp_path: Path) -> None:
    maker, sizes = FAMILIES[family]
    config = maker(**sizes, max_position_embeddings=POSITIONS, pad_token_id=1, num_labels=LABELS)
    torch.manual_seed(1)
    encoder = AutoModel.from_config(config).eval()
    encoder.save_pretrained(tmp_path)
    model: Any = load_model(tmp_path, HEAD.of({"arc_size": 0, "relation_size": 0}), LABELS).eval()
    words = torch.tensor([[1.0, 0, 0, 0, 0, 0], [0, 0.5, 0.5, 0, 0, 0], [0, 0, 0, 1, 0, 0]]).expand(2, 3, 6)
    vectors = model(input_ids=IDS, attention_mask=torch.ones_like(IDS), words=words).logits
    states = encoder(input_ids=IDS, attention_mask=torch.ones_like(IDS)).last_hidden_state
    expected = torch.stack([states[:, 0], states[:, 1:3].mean(1), states[:, 3]], 1)
    torch.testing.assert_close(vectors, expected.repeat(1, 1, 4))


def test_a_type_that_xlgrid_does_not_know_has_a_parser(tmp_path: Path) -> None:
    config = ElectraConfig(vocab_size=40, embedding_size=8, hidden_size=8, num_hidden_layers=1, num_attention_heads=2)
    torch.manual_seed(1)
    AutoModel.from_config(config).save_pretrained(tmp_path)
    config.num_labels = LABELS
    expected = {name: p.shape for name, p in new_model(config, HEAD).named_parameters()}
    model = load_model(tmp_path, HEAD, LABELS)
    assert {name: p.shape for name, p in model.named_parameters()} == expected
    assert expected["parser.relation.weight"] == (100 * LABELS, 100)


def test_options_decide_the_sizes_of_the_model() -> None:
    assert HEAD.of({"n": 7, "arc_size": 500}) is HEAD.of({}), "those of the data are none of the model's"
    maker, sizes = FAMILIES["bert"]
    model: Any = new_model(maker(**sizes, num_labels=LABELS), HEAD.of({"arc_size": 7, "relation_size": 0}))
    assert model.parser.sizes == [7, 7, 16, 16]
    assert type(model) is parser_class(HEADS["token"].model_class("Bert"), 7, 0)
    assert not {name for name, _ in model.named_children()} - {"bert", "dropout", "parser"}
