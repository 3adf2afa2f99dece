"""Asks its host for a threshold, on the main thread."""

import ndbridge


def above(name, scores):
    return scores > ndbridge.host.threshold(name, scores)


ndbridge.serve()
