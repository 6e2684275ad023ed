// What comes with a certain header goes over a connection that nobody shares with its client.

import { Setup, Wishes, settings } from "./forebay/configure";
import { Preference } from "./forebay/reuse";

const WITH_NOBODY = 0;

export function configure(setup: Setup): Wishes {
  const wishes = new Wishes();
  const keys = new Map<string, string>().set("header", "authorization");
  wishes.problems = settings(setup.config, keys);
  wishes.attributes = ["header:" + keys.get("header")];
  return wishes;
}

export function prefer(header: string, _: string, firstRequest: i32): Preference {
  return new Preference(header == "" ? -1 : WITH_NOBODY, -1, -1, -1);
}
