// What comes with a certain header goes over a connection that nobody shares with its client.

import { guarded, settings } from "./guarded.js";

const WITH_NOBODY = 0;
const NO_OPINION = { mode: -1, fresh: -1, tag: -1, tagAttribute: -1 };

export const configure = {
  configure(setup) {
    const { header } = settings(setup.config, { header: "authorization" });
    return { attributes: [`header:${header}`], headers: [] };
  },
};

export const reuse = {
  prefer: guarded(NO_OPINION, (header) => (header ? { ...NO_OPINION, mode: WITH_NOBODY } : NO_OPINION)),
};
