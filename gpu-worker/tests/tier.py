"""Which tests are played: those of every landing, or all of them (`npm run test:all`; test/run/tier.ts)."""

import os

TIER = os.environ.get("TEMPER_TEST_TIER", "landing")
IS_NIGHTLY = TIER == "nightly"
