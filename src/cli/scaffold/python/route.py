"""Requests with a cookie go to another backend."""

from guarded import guarded, problem, settings
from wit_world import exports
from wit_world.exports.configure import Wishes
from wit_world.exports.route import Decision

BACKEND = 0
NO_OPINION = Decision(action=-1, target=-1, remember=0)

# The index of the backend for who has the cookie.
target = -1


class Configure(exports.Configure):
    def configure(self, setup):
        global target
        said = settings(setup.config, cookie="preview", backend="next")
        target = setup.backends.index(said["backend"]) if said["backend"] in setup.backends else -1
        # Without an attachment only the keys are checked, and no backends are given.
        if target < 0 and setup.attachment:
            raise problem("backend", f"there is no backend `{said['backend']}`, only: {', '.join(setup.backends)}")
        return Wishes(attributes=[f"cookie:{said['cookie']}"], headers=[])


class Route(exports.Route):
    @guarded(no_opinion=NO_OPINION)
    def route(self, method, host, path, cookie, _):
        if not cookie or target < 0:
            return NO_OPINION
        return Decision(action=BACKEND, target=target, remember=0)
