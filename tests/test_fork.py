"""Forked children of a process that uses a device."""

from __future__ import annotations

import child


def test_a_child_of_a_used_device_is_told() -> None:
    out = child.run(
        """
        import os, torch, torch_tpu
        x = torch.ones(3, device="tpu") + 1
        y = x * 2  # in flight, and freed by the child
        pid = os.fork()
        if pid == 0:
            uses = [
                lambda: torch.ones(3, device="tpu"),
                lambda: torch.empty(3, device="tpu"),
                lambda: x + 1,
                lambda: x.cpu(),
                lambda: torch.tpu.init(),
                lambda: torch.tpu.synchronize(),
            ]
            status = 0
            for number, use in enumerate(uses):
                try:
                    use()
                except RuntimeError as error:
                    ok = "Cannot re-initialize TPU in forked subprocess" in str(error) and "'spawn'" in str(error)
                else:
                    ok = False
                if not ok:
                    status = number + 1
            assert torch.tpu._is_in_bad_fork()
            torch.manual_seed(0)
            assert torch.ones(3).sum().item() == 3
            del x, y
            os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert not torch.tpu._is_in_bad_fork()
        print(x.sum().item(), y.sum().item())
        """
    )
    assert out == "6.0 12.0\n"


def test_a_child_of_an_unused_device_may_use_it() -> None:
    out = child.run(
        """
        import os, sys, torch, torch_tpu
        torch.manual_seed(0)
        assert torch.tpu.device_count() == 1
        pid = os.fork()
        value = torch.ones(3, device="tpu").sum().item()
        if pid == 0:
            os._exit(0 if value == 3 else 1)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), value)
        """
    )
    assert out == "0 3.0\n"


def test_a_child_that_ends_normally() -> None:
    out = child.run(
        """
        import multiprocessing, torch, torch_tpu
        x = torch.ones(1000, device="tpu").exp()
        def work(queue):
            queue.put(torch.ones(2).sum().item())
        context = multiprocessing.get_context("fork")
        queue = context.SimpleQueue()
        process = context.Process(target=work, args=(queue,))
        process.start()
        print(queue.get())
        process.join()
        print(process.exitcode, round(x[0].item(), 3))
        """
    )
    assert out == "2.0\n0 2.718\n"
