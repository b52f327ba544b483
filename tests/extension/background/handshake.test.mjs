// The proofs of both sides of the link, and the pairing file.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  Handshake,
  makeNonce,
  makeProof,
  verifyProof,
} from "../../../src/afoot/extension/background/handshake.js";
import { Unpaired, parsePairing } from "../../../src/afoot/extension/background/pairing.js";

const KEY = Array.from({ length: 32 }, (_, byte) => byte.toString(16).padStart(2, "0")).join("");
const NONCES = { gateway: "aa".repeat(32), extension: "55".repeat(32) };
// HMAC-SHA256 over the label and both nonces' bytes, as Python's hmac makes it.
const PROOFS = {
  ext: "15f323a7d850fd39f09b7d6855d4d9ccdd0790bfe44bf494822e6b13a4f32c77",
  gw: "2e152a7131fec5af207e633ba038c9beeaba86b792fc4b7e7cd1ed649ff04ef1",
};

test("B7: a proof is what Python makes of the same bytes, and one side's is not the other's", async () => {
  for (const side of ["ext", "gw"]) {
    assert.equal(await makeProof(KEY, side, NONCES), PROOFS[side]);
    assert.equal(await verifyProof(KEY, side, NONCES, PROOFS[side]), true);
  }
  assert.equal(await verifyProof(KEY, "gw", NONCES, PROOFS.ext), false);
  const swapped = { gateway: NONCES.extension, extension: NONCES.gateway };
  assert.equal(await verifyProof(KEY, "gw", swapped, PROOFS.gw), false);
  for (const odd of [undefined, null, "", 7, PROOFS.gw.slice(2), "zz".repeat(32)]) {
    assert.equal(await verifyProof(KEY, "gw", NONCES, odd), false);
  }
  assert.notEqual(makeNonce(), makeNonce());
});

test("B7: only a challenge, then only a right proof counts", async () => {
  const said = [];
  const open = () => new Handshake(KEY, (text) => said.push(JSON.parse(text)));
  const challenge = JSON.stringify({ method: "link.challenge", params: { nonce: NONCES.gateway } });
  const good = open();
  assert.equal(await good.receive(challenge), false);
  const { nonce, mac } = said[0].params;
  const nonces = { gateway: NONCES.gateway, extension: nonce };
  assert.equal(await verifyProof(KEY, "ext", nonces, mac), true);
  const proof = JSON.stringify({ method: "link.proof", params: { mac: await makeProof(KEY, "gw", nonces) } });
  assert.equal(await good.receive(proof), true);
  await assert.rejects(open().receive(proof), /not your gateway/);
  for (const second of [proof, challenge, '{"method":"link.welcome"}', "null"]) {
    const other = open();
    await other.receive(challenge);
    await assert.rejects(other.receive(second), /not your gateway/); // an old proof is worth nothing now
  }
});

test("B7: a pairing file is believed only if it is whole and stays on this machine", () => {
  const file = (url, key = KEY) => JSON.stringify({ url, key });
  assert.deepEqual(parsePairing(file("ws://127.0.0.1:8420/link")), {
    url: "ws://127.0.0.1:8420/link",
    key: KEY,
  });
  const bad = [
    "",
    "null",
    file("ws://evil.example/link"),
    file("http://127.0.0.1/"),
    file("ws://127.0.0.1/", "short"),
  ];
  for (const text of bad) assert.throws(() => parsePairing(text), Unpaired);
});
