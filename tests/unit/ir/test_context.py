"""Contexts of threads and forked processes."""

import os
import signal
import threading

import pytest

from flydsl.ir import context, get_context, make_context_ahead


def context_of_a_new_thread():
    found = []
    thread = threading.Thread(target=lambda: found.append(get_context()))
    thread.start()
    thread.join()
    return found[0]


def test_the_context_made_ahead_is_handed_out_once(monkeypatch):
    monkeypatch.setattr(context, "_ahead", [])
    make_context_ahead()
    make_context_ahead()
    (ahead,) = context._ahead
    assert context_of_a_new_thread() is ahead
    assert context_of_a_new_thread() is not ahead and context._ahead == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_child_forked_while_a_context_is_made_has_contexts():
    with context._making:  # as another thread may hold it
        child = os.fork()
        if child == 0:
            signal.alarm(20)  # ends a child that hangs
            context_of_a_new_thread()
            os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
