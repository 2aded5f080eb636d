"""transformers' Trainer over a tiny Llama: logs of each step, and evaluation. With a text of JSON: further arguments; with a folder behind it: a checkpoint that it goes on from."""

import json
import os
import sys
import tempfile

import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments


def main():
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=64,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
    )
    model = LlamaForCausalLM(config)
    numbers = torch.randint(0, 64, (32, 12), generator=torch.Generator().manual_seed(1))
    data = [{"input_ids": row, "labels": row} for row in numbers]
    world = int(os.environ.get("WORLD_SIZE", "1"))
    more = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
    arguments = TrainingArguments(
        **{"output_dir": tempfile.mkdtemp(), "save_strategy": "no", "use_cpu": True} | more,
        per_device_train_batch_size=8 // world,
        per_device_eval_batch_size=4,
        num_train_epochs=2,
        learning_rate=1e-3,
        lr_scheduler_type="constant",
        logging_steps=1,
        eval_strategy="epoch",
        report_to=[],
        disable_tqdm=True,
        seed=3,
    )
    trainer = Trainer(model=model, args=arguments, train_dataset=data, eval_dataset=data[:8])
    trainer.train(resume_from_checkpoint=sys.argv[2] if len(sys.argv) > 2 else None)
    if trainer.is_world_process_zero():
        logged = [entry[name] for name in ("loss", "eval_loss") for entry in trainer.state.log_history if name in entry]
        print("RESULT", json.dumps([arguments.world_size, *logged]))


if __name__ == "__main__":
    main()
