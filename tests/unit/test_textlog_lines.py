"""Lines of text logs as trainers print them, and the step and the numbers in each."""

import pytest

from tests.support.text_logs import read_text
from wtwin_adapters.patterns import PATTERNS
from wtwin_adapters.textrows import choose_pattern, lines_of
from wtwin_watch.metrics import Names
from wtwin_watch.model import Point

LINES = [
    (
        "Megatron-LM",
        " iteration      100/    5000 | consumed samples:    25600 | elapsed time per iteration (ms): 2.3 |"
        " learning rate: 1.500E-04 | global batch size:   256 | lm loss: 1.200000E+00 | loss scale: 1.0 |"
        " grad norm: 0.713 | number of skipped iterations:   0 | number of nan iterations:   0 |",
        "iteration",
        100,
        {"lm loss": 1.2, "learning rate": 1.5e-4, "grad norm": 0.713},
    ),
    (
        "Megatron-LM",
        " [2024-05-01 12:00:00] iteration 7/ 100 | lm_loss: 9.9E+00 | loss scale: 65536.0 |",
        "iteration",
        7,
        {"lm_loss": 9.9},
    ),
    (
        "Megatron-LM",
        "validation loss at iteration 200 | lm loss value: 7.645E+00 | lm loss PPL: 2.09E+03 | ",
        None,
        200,
        {"validation loss": 7.645},
    ),
    ("nanoGPT", "iter 10: loss 3.2510, time 120.51ms, mfu 5.32%", "iter", 10, {"loss": 3.251}),
    (
        "nanoGPT",
        "iter 10: loss 10.5924, grad_norm 2.0571, lr 6.00e-05, time 104.3ms",
        "iter",
        10,
        {"loss": 10.5924, "grad_norm": 2.0571, "lr": 6e-5},
    ),
    (
        "Megatron-LM",
        "[2026-05-06 00:00:01] iteration        1/       2 | lm loss: 1.5E+00 | grad norm: 1.0 |"
        " GPU utilization: 50.0MODEL_TFLOP/s/GPU[Rank 0] (after 1 iterations) memory (GB) | x: 10.0 |",
        "iteration",
        1,
        {"lm loss": 1.5, "grad norm": 1.0},
    ),
    (
        "key=value",
        "Iter 10: Train loss 2.100, Learning Rate 1.000e-05, It/sec 1.2, Tokens/sec 300",
        "Iter",
        10,
        {"Train loss": 2.1, "Learning Rate": 1e-5},
    ),
    ("key=value", "Iter 25: Val loss 1.800, Val took 3.2s", "Iter", 25, {"Val loss": 1.8}),
    (
        "key=value",
        "  Step 400/400 | Loss: 0.4000 | batch_size: 1",
        "Step",
        400,
        {"Loss": 0.4},
    ),
    (
        "key=value",
        "Train Epoch: 1 [640/60000 (1%)]\tLoss: 2.245",
        "batch",
        60640,
        {"Loss": 2.245},
    ),
    (
        "key=value",
        "Epoch [1][50/1000]\tlr: 1.000e-02, eta: 1:00:00, loss_cls: 0.5, loss: 2.25, grad_norm: 3.5",
        "batch",
        1050,
        {"lr": 0.01, "loss": 2.25, "grad_norm": 3.5},
    ),
    (
        "progress bar",
        " 100/938 [==>...........................] - ETA: 3s - loss: 0.53 - accuracy: 0.85",
        "progress bar",
        100,
        {"loss": 0.53},
    ),
    (
        "key=value",
        "Train: 0 [  50/1251 (  4%)]  Loss: 6.95 (6.96)  Time: 0.5s  LR: 1.000e-05",
        "batch",
        50,
        {"Loss": 6.95, "LR": 1e-5},
    ),
    (
        "key=value",
        "01/02/2024 10:00:00 - INFO - __main__ - Epoch 0, Step 10, Loss 2.31",
        "Step",
        10,
        {"Loss": 2.31},
    ),
    ("key=value", "steps: 10 loss: 8.25 iter time (s): 0.5", "steps", 10, {"loss": 8.25}),
    (
        "progress bar",
        "Epoch 0: :  10%|# | 5/50 [00:01<00:08, reduced_train_loss=11.0, global_step=4.000]",
        "global_step",
        4,
        {"reduced_train_loss": 11},
    ),
    ("nanoGPT", "step 250: train loss 2.4, val loss 2.51", None, 250, {"val loss": 2.51}),
    (
        "modded-nanogpt",
        "step:10/1000 train_loss:7.25 train_time:1234ms step_avg:120.5ms",
        "step",
        10,
        {"train_loss": 7.25},
    ),
    (
        "modded-nanogpt",
        "step:125/1000 val_loss:4.44 train_time:9ms",
        "step",
        125,
        {"val_loss": 4.44},
    ),
    (
        "llm.c",
        "step   10/18865 | loss 9.25 (+1.20z)| norm 2.1 (+nanz)| lr 8.57e-06 | 123.4 ms | 50.1% bf16 MFU",
        "step",
        10,
        {"loss": 9.25, "grad_norm": 2.1, "lr": 8.57e-6},
    ),
    (
        "llm.c",
        "step    1/37 | train loss 4.67 | norm 6.2 | lr 1e-04 (93 ms)",
        "step",
        1,
        {"train loss": 4.67, "grad_norm": 6.2, "lr": 1e-4},
    ),
    ("llm.c", "step 0: train loss 5.356082 (took 1234 ms)", "step", 0, {"train loss": 5.356082}),
    (
        "llm.c",
        "s:250 trl:6.5 lr:0.0006 norm:1.5",
        "step",
        250,
        {"train_loss": 6.5, "lr": 6e-4, "grad_norm": 1.5},
    ),
    (
        "fairseq",
        "2021-03-01 | INFO | train_inner | epoch 001:    100 / 1000 loss=12.5, nll_loss=12.1, ppl=4391,"
        " wps=1000, ups=2.5, num_updates=100, lr=1.25e-05, gnorm=3.5, train_wall=40, wall=50",
        "num_updates",
        100,
        {"loss": 12.5, "nll_loss": 12.1, "lr": 1.25e-5, "grad_norm": 3.5},
    ),
    (
        "fairseq",
        '2021-03-01 | INFO | train_inner | {"epoch": 1, "update": 0.1, "loss": "9.5", "num_updates": "50",'
        ' "lr": "1e-05", "gnorm": "2.5"}',
        "num_updates",
        50,
        {"loss": 9.5, "lr": 1e-5, "grad_norm": 2.5},
    ),
    (
        "Hugging Face",
        "{'loss': 2.1, 'grad_norm': 1.5, 'learning_rate': 1e-05, 'epoch': 0.1}",
        "row number",
        1,
        {"loss": 2.1, "grad_norm": 1.5, "learning_rate": 1e-5},
    ),
    (
        "Hugging Face",
        "[INFO] {'loss': '2.1', 'step': 40}",
        "step",
        40,
        {"loss": 2.1},
    ),
    (
        "MLPerf",
        ':::MLLOG {"namespace": "", "time_ms": 1, "event_type": "POINT_IN_TIME", "key": "train_loss",'
        ' "value": 3.74, "metadata": {"file": "a.py", "lineno": 75, "samples_count": 80}}',
        "samples_count",
        80,
        {"train_loss": 3.74},
    ),
    (
        "progress bar",
        "Epoch 2:  10%|█         | 100/938 [00:01<00:08, 103.20it/s, v_num=0, loss=0.531]",
        "progress bar",
        2 * 938 + 100,
        {"loss": 0.531},
    ),
    (
        "progress bar",
        " 12%|#2        | 12/100 [00:01<00:08, 10.31it/s, loss=2.31]",
        "progress bar",
        12,
        {"loss": 2.31},
    ),
    (
        "key=value",
        "2024-05-01T10:00:00Z INFO step=100 loss=2.31 lr=3e-4",
        "step",
        100,
        {"loss": 2.31, "lr": 3e-4},
    ),
    (
        "key=value",
        "step: 1,200, loss: nan, grad_norm: inf",
        "step",
        1200,
        {"loss": "nan", "grad_norm": "inf"},
    ),
    ("key=value", "Step 100 | train/loss: 2.31 | acc: 50%", "Step", 100, {"train/loss": 2.31}),
    (
        "key=value",
        "Epoch [2/10], Step [100/600], Loss: 0.4521",
        "Step",
        700,
        {"Loss": 0.4521},
    ),
    (
        "key=value",
        "\x1b[31m[rank0]:2024-07-01 10:00:00,123 - root - INFO - step: 10  loss:  7.25 "
        " grad_norm: 2.5  tps: 1,234\x1b[39m",
        "step",
        10,
        {"loss": 7.25, "grad_norm": 2.5},
    ),
    (
        "key=value",
        "[09/24 10:00:00 d2.utils.events]:  eta: 0:17:10  iter: 19  total_loss: 86.5  loss_cls: 55.1 "
        " lr: 2.8e-07",
        "iter",
        19,
        {"total_loss": 86.5, "lr": 2.8e-7},
    ),
    (
        "key=value",
        "completed step: 10, seconds: 1.25, TFLOP/s/device: 99.5, total_weights: 8192, loss: 9.75",
        "step",
        10,
        {"loss": 9.75},
    ),
    ("key=value", "Epoch: 3 Average loss: 0.25", "Epoch", 3, {"loss": 0.25}),
    (
        "Megatron-LM",
        "Training epoch 1, iteration 4/999 | lr: 1.5e-04 | global_batch_size: 8 | global_step: 1004 |"
        " reduced_train_loss: 2.75 | train_step_timing in s: 0.5",
        "global_step",
        1004,
        {"lr": 1.5e-4, "reduced_train_loss": 2.75},
    ),
    (
        "fairseq",
        '[2023-05-01 10:00:00,123][train_inner][INFO] - {"epoch": 1, "update": 0.1, "loss": "9.5",'
        ' "num_updates": "50", "lr": "1e-05", "gnorm": "2.5"}',
        "num_updates",
        50,
        {"loss": 9.5, "lr": 1e-5, "grad_norm": 2.5},
    ),
    (
        "key=value",
        "2023/01/01 10:00:00 - mmengine - INFO - Iter(train) [   150/80000]  lr: 9.9e-03  eta: 1:00:00 "
        " time: 0.3  loss: 2.25  decode.loss_ce: 1.5",
        "iter",
        150,
        {"lr": 9.9e-3, "loss": 2.25},
    ),
    (
        "key=value",
        "Epoch: [2/100]  [ 30/400]  eta: 0:01:00  loss: 8.5 (8.75)  lr: 0.000125 (0.000125)  wd: 0.04",
        "batch",
        830,
        {"loss": 8.5, "lr": 1.25e-4},
    ),
    (
        "key=value",
        "INFO Train: [2/300][30/400]\teta 0:10:00 lr 0.000125\t wd 0.05\ttime 0.5 (0.5)\tloss 8.5 (8.75)"
        "\tgrad_norm 1.5 (1.75)\tloss_scale 65536.0 (65536.0)\tmem 500MB",
        "batch",
        830,
        {"loss": 8.5, "lr": 1.25e-4, "grad_norm": 1.5},
    ),
    (
        "ESPnet",
        "[host] 2023-01-01 10:00:00,123 (trainer:762) INFO: 1epoch:train:51-100batch: iter_time=0.01,"
        " loss_ctc=90.5, loss=80.25, acc=0.5, grad_norm=5.5, clip=100.0, optim0_lr0=2.5e-06",
        "batch",
        100,
        {"loss": 80.25, "grad_norm": 5.5},
    ),
    (
        "key=value",
        "| epoch   2 |   200/ 2983 batches | lr 20.00 | ms/batch 5.96 | loss  6.50 | ppl   665.1",
        "batch",
        6166,
        {"lr": 20, "loss": 6.5},
    ),
    (
        "CLU",
        "I0101 10:00:00.123456 140 logging_writer.py:48] [100] learning_rate=0.001, steps_per_sec=3.5,"
        " train_loss=2.25",
        "step",
        100,
        {"learning_rate": 1e-3, "steps_per_sec": 3.5, "train_loss": 2.25},
    ),
    (
        "Marian",
        "[2020-01-01 10:00:00] Ep. 1 : Up. 1000 : Sen. 10,000 : Cost 9.75 * 1,000 after 2,000 : Time 100.1s :"
        " 20000.1 words/s : gNorm 0.5 : L.r. 3.0000e-05",
        "Up.",
        1000,
        {"loss": 9.75, "grad_norm": 0.5, "lr": 3e-5},
    ),
    (
        "Marian",
        "[2020-01-01 10:00:00] Ep. 1 : Up. 20 : Sen. 200 : Cost 9.75 : Time 1.1s : 200.1 words/s",
        "Up.",
        20,
        {"loss": 9.75},
    ),
    (
        "OpenNMT",
        "[2020-01-01 10:00:00,123 INFO] Step 50/100000; acc:  5.01; ppl: 12.5; xent: 2.25; lr: 0.00125;"
        " 1234/1234 tok/s;     10 sec",
        "Step",
        50,
        {"loss": 2.25, "lr": 1.25e-3},
    ),
    (
        "darknet",
        " 12: 2.500000, 3.750000 avg, 0.001000 rate, 3.5 seconds, 768 images",
        "batch",
        12,
        {"loss": 2.5, "lr": 1e-3},
    ),
    (
        "progress bar",
        "938/938 - 2s - loss: 0.25 - accuracy: 0.9 - val_loss: 0.5 - 2s/epoch - 2ms/step",
        "progress bar",
        938,
        {"loss": 0.25, "val_loss": 0.5},
    ),
    (
        "progress bar",
        "60/60 - 2s 30ms/step - loss: 0.25",
        "progress bar",
        60,
        {"loss": 0.25},
    ),
    ("key=value", "iteration 5 loss tensor(2.25, device='cuda:0')", "iteration", 5, {"loss": 2.25}),
]


@pytest.mark.parametrize(
    ("pattern", "line", "step_name", "step", "values"), LINES, ids=[line[1][:40] for line in LINES]
)
def test_a_line_is_read_as_its_trainer_meant_it(pattern, line, step_name, step, values):
    read = read_text(line + "\n", pattern)

    assert {p.step for p in read.points} == {step}
    assert {p.metric: str(p.value) for p in read.points} == {
        name: str(float(value)) for name, value in values.items()
    }
    assert step_name is None or read.step_name == step_name


@pytest.mark.parametrize(
    "line",
    [
        "[INFO] [fused_optimizer.py:363:_update_scale] Reducing dynamic loss scale from 65536 to 32768.0",
        "step 3: z loss 0.5, auxiliary loss: 0.25",
        "{'train_runtime': 12.5, 'train_loss': 1.25, 'epoch': 3.0}",
        "a loss of 3 points, and of 5 at the next step",
        "number of skipped iterations:   8 | loss scale: 32768.0 |",
        "loss",
        "",
    ],
)
def test_a_line_that_tells_no_loss_at_a_step_is_passed_over(line):
    for pattern in (pattern.name for pattern in PATTERNS):
        assert [p for p in read_text(line + "\n", pattern).points if p.metric] == []


def test_the_loss_of_an_evaluation_is_not_that_of_training():
    read = read_text("step 5 loss 2.5\nEval step 5 loss 3.5\n", "key=value")

    assert [(p.metric, p.value) for p in read.points] == [("loss", 2.5), ("val_loss", 3.5)]


@pytest.mark.parametrize(
    ("text", "step_name", "points"),
    [
        (
            "[trace]: batch-1\n[batch=1/1000]:\n\t Train time/batch: 0\n\t Train loss/train/total: 3.5\n"
            "\t Train lr-DecoupledAdamW/group0: 0.25\n[batch=2/1000]:\n\t Train loss/train/total: 3.25\n",
            "batch",
            [
                Point("loss/train/total", 1.0, 3.5),
                Point("lr-DecoupledAdamW/group0", 1.0, 0.25),
                Point("loss/train/total", 2.0, 3.25),
            ],
        ),
        (
            "2024-01-01 10:00:00.000\thost:0\tolmo.train:816\tINFO\t[step=5/739328]\n"
            "    train/CrossEntropyLoss=3.5\n    train/Perplexity=33.1\n    optim/total_grad_norm=0.5\n",
            "step",
            [
                Point("train/CrossEntropyLoss", 5.0, 3.5),
                Point("optim/total_grad_norm", 5.0, 0.5),
            ],
        ),
    ],
)
def test_values_below_the_line_of_their_step_belong_to_it(text, step_name, points):
    assert choose_pattern(lines_of(text.encode()), Names()).name == "steps with blocks"

    read = read_text(text, "steps with blocks")

    assert (read.points, read.step_name, read.skipped) == (points, step_name, {})


def test_a_batch_that_starts_anew_each_epoch_is_counted_on():
    text = "".join(
        f"Epoch {epoch}, Batch {batch}, Loss: {loss}\n"
        for epoch, batch, loss in [(0, 0, 4.0), (0, 5, 3.5), (1, 0, 3.25), (1, 5, 3.0)]
    )

    read = read_text(text, "key=value")

    # An epoch of two batches, five apart, has ten.
    assert [(p.step, p.value) for p in read.points] == [(0, 4), (5, 3.5), (10, 3.25), (15, 3)]
    assert read.skipped == {}
