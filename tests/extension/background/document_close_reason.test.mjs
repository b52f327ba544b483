// Why a document is gone, by what the browser says when its port closes.
import assert from "node:assert/strict";
import { test } from "node:test";
import { closeReason, isCached } from "../../../src/afoot/extension/background/document_close_reason.js";

const HERE = { status: "complete", url: "https://a.example/x#1", discarded: false };
const SIGNS = {
  isTop: true,
  saidGoodbye: true,
  isTopOpen: false,
  hasSuccessor: false,
  wasReplaced: false,
  attempts: 20,
};
const why = (tab, other = {}) => closeReason({ ...SIGNS, url: "https://a.example/x", tab, ...other });

test("B6: what the browser says when a port closes tells why", () => {
  assert.equal(why(null), "closed");
  assert.equal(why(null, { wasReplaced: true }), "discarded");
  assert.equal(why({ ...HERE, discarded: true, status: "unloaded" }), "discarded");
  assert.equal(why({ ...HERE, status: "unloaded" }), "crashed");
  assert.equal(why({ ...HERE, status: "loading", pendingUrl: "https://a.example/x" }), "reloaded");
  assert.equal(why({ ...HERE, status: "loading", pendingUrl: "https://a.example/y" }), "navigated");
  assert.equal(why({ status: "loading", discarded: false }), "navigated"); // to a site that is not allowed
  assert.equal(why(HERE, { saidGoodbye: false }), "lost");
  assert.equal(why(HERE, { attempts: 0 }), null); // the tab may be about to close
  assert.equal(why(HERE, { attempts: 0, hasSuccessor: true }), "reloaded");
});

test("B6: a frame's end is its own, unless its tab ends", () => {
  const inner = { isTop: false, isTopOpen: true, url: "https://b.example/" };
  assert.equal(why(HERE, inner), "removed");
  assert.equal(why(HERE, { ...inner, attempts: 0 }), null);
  assert.equal(why({ ...HERE, status: "loading" }, inner), "navigated");
  assert.equal(why(HERE, { ...inner, saidGoodbye: false }), "crashed");
  assert.equal(why({ ...HERE, pendingUrl: HERE.url }, { ...inner, isTopOpen: false }), "reloaded");
});

test("B6: a page that may come back is told from one that is over", () => {
  assert.equal(
    isCached("The page keeping the extension port is moved into back/forward cache, so", null),
    true,
  );
  assert.equal(isCached(undefined, { persisted: true }), true);
  assert.equal(isCached(undefined, { persisted: "yes" }), false);
});
