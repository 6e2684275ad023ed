// Requests with a cookie go to another backend.

import { guarded, problem, settings } from "./guarded.js";

const BACKEND = 0;
const NO_OPINION = { action: -1, target: -1, remember: 0 };

/** The index of the backend for who has the cookie. */
let target = -1;

export const configure = {
  configure(setup) {
    const { cookie, backend } = settings(setup.config, { cookie: "preview", backend: "next" });
    target = setup.backends.indexOf(backend);
    // Without an attachment only the keys are checked, and no backends are given.
    if (target < 0 && setup.attachment !== "") {
      throw problem("backend", `there is no backend "${backend}", only: ${setup.backends.join(", ")}`);
    }
    return { attributes: [`cookie:${cookie}`], headers: [] };
  },
};

export const route = {
  route: guarded(NO_OPINION, (method, host, path, cookie) => {
    if (!cookie || target < 0) return NO_OPINION;
    return { action: BACKEND, target, remember: 0 };
  }),
};
