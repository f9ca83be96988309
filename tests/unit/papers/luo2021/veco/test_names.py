"""Which parameters are those of cross-attention."""

from transformers import XLMRobertaConfig, XLMRobertaForCausalLM

from xlgrid.papers.luo2021.veco.names import is_cross_attention


def test_the_names_are_those_of_a_decoder_of_transformers() -> None:
    sizes = {
        "hidden_size": 8,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 8,
        "vocab_size": 20,
    }
    with_cross, without = (
        {
            name
            for name, _ in XLMRobertaForCausalLM(XLMRobertaConfig(**sizes, is_decoder=True, **more)).named_parameters()
        }
        for more in ({"add_cross_attention": True}, {})
    )
    assert {name for name in with_cross if is_cross_attention(name)} == with_cross - without
    assert len(with_cross - without) == 2 * 10, "four linear layers and a LayerNorm in each layer"
