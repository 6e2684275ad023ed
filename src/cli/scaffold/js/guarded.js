// What nobody catches becomes a line in the log and no opinion: the request goes on, the instance lives.

import { write } from "forebay:policy/log@0.1.0";

/** A handler that answers `noOpinion` when `handler` throws. */
export function guarded(noOpinion, handler) {
  return (...given) => {
    try {
      return handler(...given);
    } catch (error) {
      write("error", `${error} ${error?.stack ?? ""}`.replace(/\s+/g, " "));
      return noOpinion;
    }
  };
}

/** The texts of `config = { … }`, which are the keys of `defaults`; throws a problem that the operator is shown. */
export function settings(config, defaults) {
  const texts = JSON.parse(config);
  for (const [key, value] of Object.entries(texts)) {
    if (!(key in defaults)) throw problem(key, `unknown; the keys are: ${Object.keys(defaults).join(", ")}`);
    if (typeof value !== "string" || value === "") throw problem(key, "must be a text");
  }
  return { ...defaults, ...texts };
}

/** Refuses the configuration: thrown in `configure`, it is shown with the key it is about. */
export function problem(path, message) {
  return [{ path, message }];
}
