"""Methods whose modules are those of the package peft: LoRA, IA3 and prefix tuning.

peft is in the extra `peft`. It is imported when a method is installed in a model, and so is torch.
"""
