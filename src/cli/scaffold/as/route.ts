// Requests with a cookie go to another backend.

import { Problem, Setup, Wishes, settings } from "./forebay/configure";
import { Method } from "./forebay/host";
import { Decision } from "./forebay/route";

const BACKEND = 0;

/** The index of the backend for who has the cookie. */
let target = -1;

export function configure(setup: Setup): Wishes {
  const wishes = new Wishes();
  const keys = new Map<string, string>().set("cookie", "preview").set("backend", "next");
  wishes.problems = settings(setup.config, keys);
  target = setup.backends.indexOf(keys.get("backend"));
  // Without an attachment only the keys are checked, and no backends are given.
  if (target < 0 && setup.attachment != "") {
    wishes.problems.push(new Problem("backend", "there is no such backend, only: " + setup.backends.join(", ")));
  }
  wishes.attributes = ["cookie:" + keys.get("cookie")];
  return wishes;
}

export function route(method: Method, host: string, path: string, cookie: string, _: string): Decision {
  if (cookie == "" || target < 0) return new Decision(-1, -1, 0);
  return new Decision(BACKEND, target, 0);
}
