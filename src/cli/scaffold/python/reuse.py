"""What comes with a certain header goes over a connection that nobody shares with its client."""

from guarded import guarded, settings
from wit_world import exports
from wit_world.exports.configure import Wishes
from wit_world.exports.reuse import Preference

WITH_NOBODY = 0
NO_OPINION = Preference(mode=-1, fresh=-1, tag=-1, tag_attribute=-1)


class Configure(exports.Configure):
    def configure(self, setup):
        header = settings(setup.config, header="authorization")["header"]
        return Wishes(attributes=[f"header:{header}"], headers=[])


class Reuse(exports.Reuse):
    @guarded(no_opinion=NO_OPINION)
    def prefer(self, header, _, first_request):
        if not header:
            return NO_OPINION
        return Preference(mode=WITH_NOBODY, fresh=-1, tag=-1, tag_attribute=-1)
