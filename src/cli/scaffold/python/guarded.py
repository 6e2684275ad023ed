"""What nobody catches becomes a line in the log and no opinion: the request goes on, the instance lives."""

import functools
import json
import traceback

from componentize_py_types import Err
from wit_world.exports.configure import Problem
from wit_world.imports.log import Level, write


def guarded(no_opinion):
    """Makes a handler answer `no_opinion` when it raises."""

    def around(handler):
        @functools.wraps(handler)
        def guard(*given):
            try:
                return handler(*given)
            except Exception as error:
                write(Level.ERROR, " ".join("".join(traceback.format_exception(error)).split()))
                return no_opinion

        return guard

    return around


def settings(config, **defaults):
    """The texts of `config = { … }`, whose keys are those of `defaults`."""
    texts = json.loads(config)
    for key, value in texts.items():
        if key not in defaults:
            raise problem(key, f"unknown; the keys are: {', '.join(defaults)}")
        if not isinstance(value, str) or not value:
            raise problem(key, "must be a text")
    return {**defaults, **texts}


def problem(path, message):
    """Refuses the configuration: raised in `configure`, it is shown with the key it is about."""
    return Err([Problem(path, message)])
