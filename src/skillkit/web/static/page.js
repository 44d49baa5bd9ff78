// What a browser adds to pages that work without it: news as they come, a countdown, and a moment to look before a yes.

const CAREFUL_MS = 600;
const BACKGROUND_MS = 5000;
const AGAIN_MS = 2000;
const events = document.body.dataset.events;

// A yes is possible once the page has been in sight for a moment: a click meant for something else is no answer.
let careful;
function takeCare() {
  const buttons = document.querySelectorAll("[data-careful]");
  clearTimeout(careful);
  for (const button of buttons) button.disabled = true;
  if (document.visibilityState === "visible") {
    careful = setTimeout(() => {
      for (const button of buttons) button.disabled = false;
    }, CAREFUL_MS);
  }
}

function words(seconds) {
  const left = Math.max(0, Math.round(seconds));
  if (left >= 86400) return `${Math.floor(left / 86400)} d ${Math.floor((left % 86400) / 3600)} h`;
  if (left >= 3600) return `${Math.floor(left / 3600)} h ${Math.floor((left % 3600) / 60)} min`;
  return left >= 60 ? `${Math.floor(left / 60)} min ${left % 60} s` : `${left} s`;
}

function countDown() {
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
    const response = await fetch(location.pathname, { headers: { accept: "text/html" } });
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

function heard(news) {
  for (const badge of document.querySelectorAll("[data-count]")) {
    badge.textContent = news.pending.length;
    badge.hidden = news.pending.length === 0;
  }
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
  opened.addEventListener("pending", (event) => heard(JSON.parse(event.data)));
  opened.addEventListener("error", () => {
    if (opened.readyState === EventSource.CLOSED && stream === opened) {
      stream = undefined;
      setTimeout(follow, AGAIN_MS);
    }
  });
}

async function ask() {
  try {
    const response = await fetch(`${events}?once=1`);
    const line = (await response.text()).split("\n").find((each) => each.startsWith("data: "));
    if (line) heard(JSON.parse(line.slice(6)));
  } catch {
    // As above.
  }
}

function prepare() {
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
  if (event.target.dataset.sent) event.preventDefault();
  event.target.dataset.sent = "yes";
});
if (events) {
  follow();
  document.addEventListener("visibilitychange", follow);
  addEventListener("pagehide", () => stream?.close());
}
