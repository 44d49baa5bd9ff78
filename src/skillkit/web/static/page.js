// What a browser adds to pages that work without it: news as they come, a countdown, and a moment to look before a yes.

const CAREFUL_MS = 600;
const BACKGROUND_MS = 5000;
const AGAIN_MS = 2000;
const PROBE_MS = 300;
const BUSY_MS = 1000;
const NEAR_END_PX = 8;
const events = document.body.dataset.events;

// A yes is possible once the page has been in sight for a moment: a click meant for something else is no answer.
// The buttons are not `disabled`, which would take the focus from who has it.
let careful;
function takeCare() {
  const buttons = document.querySelectorAll("[data-careful]");
  clearTimeout(careful);
  for (const button of buttons) button.setAttribute("aria-disabled", "true");
  if (document.visibilityState === "visible" && !isGone) {
    careful = setTimeout(() => {
      for (const button of buttons) button.removeAttribute("aria-disabled");
    }, CAREFUL_MS);
  }
}

// A page whose server is gone says so and answers nothing; one that was started anew knows this browser no more.
let isGone = false;
const GONE = {
  away: "The page's server is gone: nothing here is up to date, and nothing can be answered. Start it again: skillkit web",
  anew: "The page was started anew and does not know this browser. Open it by a new link: skillkit web",
};
function tellGone(why) {
  isGone = why !== "";
  const banner = document.querySelector("[data-gone]");
  if (banner) {
    banner.hidden = !isGone;
    if (banner.textContent !== (GONE[why] ?? "")) banner.textContent = GONE[why] ?? "";
  }
  for (const button of document.querySelectorAll(".option, .decline button")) {
    if (isGone) button.setAttribute("aria-disabled", "true");
    else if (!button.matches("[data-careful]")) button.removeAttribute("aria-disabled");
  }
  if (!isGone) takeCare();
}

// Whether the server is there, and knows us.
async function probe() {
  try {
    const response = await fetch(`${events}?once=1`);
    const why = response.status === 401 || response.status === 403 ? "anew" : response.ok ? "" : "away";
    if (why || isGone) tellGone(why);
    return why === "" ? response : undefined;
  } catch {
    tellGone("away");
    return undefined;
  }
}

function words(seconds) {
  const left = Math.max(0, Math.round(seconds));
  if (left >= 86400) return `${Math.floor(left / 86400)} d ${Math.floor((left % 86400) / 3600)} h`;
  if (left >= 3600) return `${Math.floor(left / 3600)} h ${Math.floor((left % 3600) / 60)} min`;
  return left >= 60 ? `${Math.floor(left / 60)} min ${left % 60} s` : `${left} s`;
}

function countDown() {
  if (isGone) return;
  const now = performance.now();
  for (const element of document.querySelectorAll("[data-left]")) {
    element.dataset.since ??= now;
    const left = Number(element.dataset.left) - (now - Number(element.dataset.since)) / 1000;
    element.textContent = words(left);
    if (left <= 0 && !element.dataset.over) {
      element.dataset.over = "yes";
      setTimeout(refresh, 1000);
    }
  }
  for (const element of document.querySelectorAll("[data-age]")) {
    element.dataset.since ??= now;
    element.textContent = words(Number(element.dataset.age) + (now - Number(element.dataset.since)) / 1000);
  }
}

function localTimes() {
  for (const element of document.querySelectorAll("time[data-local]")) {
    const at = new Date(element.dateTime);
    element.title = element.textContent;
    element.textContent = at.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
    delete element.dataset.local;
  }
}

// The page as the server has it now takes the place of the old one; the reader stays where they are.
let refreshing = false;
async function refresh() {
  if (refreshing) return;
  refreshing = true;
  try {
    const response = await fetch(location.pathname + location.search, { headers: { accept: "text/html" } });
    const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
    const focused = document.activeElement?.closest("[id]")?.id;
    const isLink = document.activeElement instanceof HTMLAnchorElement;
    document.title = fresh.title;
    document.querySelector("main").replaceChildren(...fresh.querySelector("main").childNodes);
    const found = focused && document.getElementById(focused);
    if (found) (isLink ? found.querySelector("a") ?? found : found).focus({ preventScroll: true });
    prepare();
  } catch {
    // The server is away; the stream comes back when it does, and brings what is true then.
  } finally {
    refreshing = false;
  }
}

// What runs changes often: only its own part of the page is exchanged, and nobody is disturbed at what they read.
let renewing = false;
async function renewRuns(shown) {
  if (renewing) return;
  renewing = true;
  try {
    const response = await fetch(shown.dataset.part ?? location.href, { headers: { accept: "text/html" } });
    const fresh = new DOMParser().parseFromString(await response.text(), "text/html").querySelector("[data-runs]");
    if (fresh) exchange(shown, fresh);
  } catch {
    // As above.
  } finally {
    renewing = false;
  }
}

// The focus stays, and so does who scrolled back in what a script wrote; else its end is in sight.
function exchange(shown, fresh) {
  const focused = shown.contains(document.activeElement) ? document.activeElement.id : "";
  const places = new Map([...shown.querySelectorAll("[data-follow]")].map((each) => [each.id, placeIn(each)]));
  shown.replaceWith(fresh);
  localTimes();
  for (const each of fresh.querySelectorAll("[data-follow]")) {
    each.scrollTop = places.get(each.id) ?? each.scrollHeight;
  }
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
}

function placeIn(element) {
  const left = element.scrollHeight - element.clientHeight - element.scrollTop;
  return left > NEAR_END_PX ? element.scrollTop : undefined;
}

function heard(news) {
  for (const badge of document.querySelectorAll("[data-count]")) {
    badge.textContent = news.pending.length || "";
  }
  const runs = document.querySelector("[data-runs]");
  if (runs && runs.dataset.runs !== news.runs) renewRuns(runs);
  const list = document.querySelector("[data-version]");
  const open = document.querySelector("[data-request]");
  if (list && list.dataset.version !== news.version) say(news.pending.length);
  if (list ? list.dataset.version !== news.version : isOver(open, news)) refresh();
}

function isOver(open, news) {
  return open !== null && !news.pending.includes(decodeURIComponent(open.dataset.request));
}

function say(count) {
  let region = document.getElementById("news");
  if (!region) {
    region = document.createElement("p");
    region.id = "news";
    region.className = "unsaid";
    region.setAttribute("role", "status");
    document.body.append(region);
  }
  region.textContent = count === 1 ? "1 request is waiting" : `${count} requests are waiting`;
}

// A browser allows few connections to one server; a page in the background gives its own back and asks now and then.
let stream;
let asking;
function follow() {
  clearInterval(asking);
  if (document.visibilityState === "visible") {
    if (!stream) listen();
  } else {
    stream?.close();
    stream = undefined;
    asking = setInterval(ask, BACKGROUND_MS);
  }
}

// A browser comes back by itself after a lost connection, but not after a refusal.
function listen() {
  const opened = new EventSource(events);
  stream = opened;
  opened.addEventListener("pending", (event) => {
    if (isGone) tellGone("");
    heard(JSON.parse(event.data));
  });
  opened.addEventListener("error", () => {
    setTimeout(probe, PROBE_MS);
    if (opened.readyState === EventSource.CLOSED && stream === opened) {
      stream = undefined;
      setTimeout(follow, AGAIN_MS);
    }
  });
}

async function ask() {
  const response = await probe();
  const line = response && (await response.text()).split("\n").find((each) => each.startsWith("data: "));
  if (line) heard(JSON.parse(line.slice(6)));
}

// One key for each thing that a person does; none while they type, and none together with another.
function goTo(id) {
  const place = document.getElementById(id);
  place?.scrollIntoView();
  place?.focus({ preventScroll: true });
}

function move(step) {
  const neighbour = document.querySelector(step > 0 ? "a[rel=next]" : "a[rel=prev]");
  if (neighbour) return neighbour.click();
  const entries = [...document.querySelectorAll(".requests .cover, .alike a")];
  const at = entries.indexOf(document.activeElement);
  entries[Math.min(Math.max(at + step, 0), entries.length - 1)]?.focus();
}

function sayWhyNot() {
  const why = document.querySelector(".why");
  if (!why) return;
  why.open = true;
  why.querySelector("input").focus();
}

const KEYS = {
  j: () => move(1),
  k: () => move(-1),
  v: () => goTo("source"),
  d: () => goTo("changes"),
  w: () => goTo("walls"),
  n: sayWhyNot,
  "?": () => document.getElementById("keys")?.showModal(),
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.isComposing) return;
  if (event.target.closest?.("input:not([type=checkbox]), textarea, select, dialog")) return;
  const option = /^[1-9]$/.test(event.key) && document.querySelectorAll(".options .option")[event.key - 1];
  const act = option ? () => option.click() : KEYS[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});

function prepare() {
  if (document.querySelector("[data-busy]")) setTimeout(refresh, BUSY_MS);
  for (const each of document.querySelectorAll("[data-follow]")) each.scrollTop = each.scrollHeight;
  takeCare();
  localTimes();
  countDown();
}

prepare();
setInterval(countDown, 1000);
document.addEventListener("visibilitychange", takeCare);
// The second click of a double click may fall through a window that the first one closed.
addEventListener("focus", takeCare);
// The second click of a double click is no second answer.
document.addEventListener("submit", (event) => {
  if (event.target.method === "dialog") return;
  if (isGone || event.target.dataset.sent || event.submitter?.getAttribute("aria-disabled") === "true") {
    event.preventDefault();
    return;
  }
  event.target.dataset.sent = "yes";
});
if (events) {
  follow();
  document.addEventListener("visibilitychange", follow);
  addEventListener("pagehide", () => stream?.close());
}
