"""Which tests are played: those of every landing, or all of them (`npm run test:all`; test/run/tier.ts)."""

import os

IS_NIGHTLY = os.environ.get("TEMPER_TEST_TIER") == "nightly"
