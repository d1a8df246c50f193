"""Training steps of GPT-2, Llama and ResNet-18."""

from paired import Row, run

ROWS = [Row("gpt2", 2, 7), Row("llama", 2, 7), Row("resnet18", 2, 7)]

if __name__ == "__main__":
    run("training steps", ROWS)
