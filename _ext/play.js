// The page with sliders and the game.  Bokeh draws the documents that lib.figures.interactive has put into the page; this
// script puts each in the place of its picture, and plays the game: belief updates, rewards, buttons, keys.
"use strict";

// ---- the model: one feedback y on the item x, noise of variance v (paper, section II; lib.posterior.step) ----
function project({ mu, Sigma }, x) {
  const along = Sigma.map(row => row[0] * x[0] + row[1] * x[1]);          // Sigma x
  return { along, mean: mu[0] * x[0] + mu[1] * x[1], var: along[0] * x[0] + along[1] * x[1] };
}

function learn(belief, x, y, v) {
  const { along, mean, var: variance } = project(belief, x), gain = along.map(a => a / (variance + v));
  return {
    mu: belief.mu.map((m, i) => m + gain[i] * (y - mean)),
    Sigma: belief.Sigma.map((row, i) => row.map((s, j) => s - gain[i] * along[j])),
  };
}

function reward(game, user, forwarded) {                // sum of gamma^n (x.theta - cost) over the forwarded items
  return forwarded.reduce((total, go, n) => {
    const x = game.x[user.items[n]];
    return go ? total + game.gamma ** (n + 1) * (x[0] * user.theta[0] + x[1] * user.theta[1] - game.cost) : total;
  }, 0);
}

function ellipse({ mu, Sigma }, points = 73) {          // 95 %: 5.991 is that quantile of chi-squared with two degrees of freedom
  const a = Math.sqrt(Math.max(Sigma[0][0], 0)), b = a > 0 ? Sigma[0][1] / a : 0;       // Cholesky
  const c = Math.sqrt(Math.max(Sigma[1][1] - b * b, 0)), r = Math.sqrt(5.991), x = [], y = [];
  for (let i = 0; i < points; i++) {
    const angle = 2 * Math.PI * i / (points - 1), cos = Math.cos(angle), sin = Math.sin(angle);
    x.push(mu[0] + r * a * cos);
    y.push(mu[1] + r * (b * cos + c * sin));
  }
  return { x, y };
}

function evenLine(x, cost) {                            // the preferences under which the item x is worth its cost
  const far = 1e3, square = x[0] ** 2 + x[1] ** 2, at = x.map(part => part * cost / square);
  return { x: [at[0] - far * x[1], at[0] + far * x[1]], y: [at[1] + far * x[0], at[1] - far * x[0]] };
}

// ---- the page ----
function make(tag, parent, text = "", properties = {}) {
  const element = Object.assign(document.createElement(tag), properties);
  element.textContent = text;
  parent.append(element);
  return element;
}

class Play {
  constructor(card, game) {
    Object.assign(this, { card, game, number: 0 });
    const label = make("label", card, "Filter for ");
    this.select = make("select", label);
    game.users.forEach((_, n) => make("option", this.select, `user ${n + 1} of ${game.users.length}`, { value: n }));
    this.select.onchange = () => this.start(Number(this.select.value));
    this.asked = make("p", card, "", { className: "play-asked" });
    this.asked.setAttribute("aria-live", "polite");
    this.buttons = make("p", card);
    this.go = make("button", this.buttons, "Forward (F)", { type: "button", onclick: () => this.act(true) });
    this.stop = make("button", this.buttons, "Discard (D)", { type: "button", onclick: () => this.act(false) });
    this.next = make("button", this.buttons, "Next user", { type: "button", hidden: true, onclick: () => {
      this.start((this.number + 1) % game.users.length);
      this.go.focus();
    } });
    this.told = make("p", card, "", { className: "play-told" });
    this.told.setAttribute("aria-live", "polite");
    this.strip = make("p", card, "", { className: "play-strip" });
    this.end = make("div", card, "", { className: "play-end" });
    this.drawing = make("div", card);
    card.addEventListener("keydown", event => {
      const key = event.key.toLowerCase();
      if ((key === "f" || key === "d") && !event.ctrlKey && !event.metaKey && !event.altKey && !event.repeat && event.target !== this.select) {
        event.preventDefault();
        this.act(key === "f");
      }
    });
  }

  start(number) {
    this.number = number;
    this.select.value = String(number);
    this.user = this.game.users[number];
    this.belief = { mu: this.game.mu, Sigma: this.game.Sigma };
    this.forwarded = [];
    this.told.textContent = `Forwarding pays what the item is worth to the user minus ${this.game.cost} and shows a rating; discarding pays and shows nothing.`;
    this.end.replaceChildren();
    [this.go, this.stop].forEach(button => { button.disabled = false; });
    this.next.hidden = true;
    this.ask();
  }

  name(x) {
    const [first, second] = this.game.features;
    return x[1] === 0 ? first : x[0] === 0 ? second : `${100 * x[0]} % ${first}, ${100 * x[1]} % ${second}`;
  }

  ask() {
    const n = this.forwarded.length, x = this.game.x[this.user.items[n]], { mean, var: variance } = project(this.belief, x);
    this.asked.textContent = `Item ${n + 1} of ${this.user.items.length}: ${this.name(x)}. You believe the user rates it `
      + `${mean.toFixed(2)} ± ${Math.sqrt(variance).toFixed(2)}.`;
    this.draw(x);
  }

  act(go) {
    const n = this.forwarded.length;
    if (n === this.user.items.length) return;
    const item = this.user.items[n], y = this.user.feedback[n];
    if (go) this.belief = learn(this.belief, this.game.x[item], y, this.game.noise[item]);
    this.forwarded.push(go);
    this.told.textContent = go ? `Item ${n + 1} was rated ${y.toFixed(2)}.` : `Item ${n + 1} discarded.`;
    if (this.forwarded.length < this.user.items.length) this.ask();
    else this.finish();
  }

  finish() {
    this.total = reward(this.game, this.user, this.forwarded);
    this.asked.textContent = `The user would rate ${this.game.features[0]} ${this.user.theta[0].toFixed(2)} and `
      + `${this.game.features[1]} ${this.user.theta[1].toFixed(2)} on average.`;
    [this.go, this.stop].forEach(button => { button.disabled = true; });
    this.next.hidden = false;
    this.next.focus();
    const table = make("table", this.end, "", { className: "table" }), head = make("tr", make("thead", table));
    ["", "forwarded", "reward, this user", "mean, all users"].forEach(word => make("th", head, word, { scope: "col" }));
    const body = make("tbody", table), line = (name, count, value, mean) => {
      const row = make("tr", body);
      make("th", row, name, { scope: "row" });
      [count, value, mean].forEach(text => make("td", row, text));
    };
    const count = decisions => String(decisions.filter(Boolean).length);
    line("You", count(this.forwarded), this.total.toFixed(3), "");
    this.game.policies.forEach((name, p) => line(
      name, count(this.user.decisions[p]), this.user.rewards[p].toFixed(3),
      `${this.game.means[p][0].toFixed(3)} ±\u00a0${(1.96 * this.game.means[p][1]).toFixed(3)}`));
    const up = value => (Math.ceil(value * 1000) / 1000).toFixed(3);        // a bound is never rounded down
    line("Upper bounds", "", up(this.user.hindsight), up(this.game.limit));
    make("p", this.end, "Policies' means are over many simulated users, ± 95 %. The first bound is hindsight, for this user: whoever knows the preferences earns as much with these items, "
      + "and nobody more. The second (a 95 % limit) bounds the mean of any policy over all users, not a reward with one of them.");
    this.draw(null);
  }

  draw(x) {
    this.strip.textContent = this.user.items.map((_, n) => n >= this.forwarded.length ? "·" : this.forwarded[n] ? "●" : "○").join("");
    const set = (name, data) => { if (this.document) this.document.get_model_by_name(name).data = data; };
    set("first", ellipse({ mu: this.game.mu, Sigma: this.game.Sigma }));
    set("now", ellipse(this.belief));
    set("mean", { x: [this.belief.mu[0]], y: [this.belief.mu[1]] });
    set("even", x ? evenLine(x, this.game.cost) : { x: [], y: [] });
    set("theta", x ? { x: [], y: [] } : { x: [this.user.theta[0]], y: [this.user.theta[1]] });
  }
}

function nameSliders(root) {                            // a screen reader says what a handle moves
  root.querySelectorAll("*").forEach(element => {
    if (element.classList.contains("noUi-handle"))
      element.setAttribute("aria-label", root.querySelector(".bk-slider-title").textContent.split(":")[0]);
    if (element.shadowRoot) nameSliders(element.shadowRoot);
  });
}

async function show(part) {
  const { item, game } = JSON.parse(part.querySelector("script").textContent);
  const still = document.getElementById(part.dataset.still);
  const card = make("div", part, "", { className: "play-card" });
  card.addEventListener("keydown", event => {           // the arrows move a slider, they do not turn the page
    if (event.key.startsWith("Arrow")) event.stopPropagation();
  });
  if (game) part.play = new Play(card, game);
  const target = game ? part.play.drawing : card;
  const views = await Bokeh.embed.embed_item(item, target);
  part.document = [...(views.roots ?? views)][0].model.document;
  if (still) {
    const box = part.parentElement;
    still.before(part);
    if (!box.children.length) box.remove();             // else an empty bar stays where the part was
    still.querySelectorAll("img").forEach(image => { image.hidden = true; });
  }
  if (game) {
    part.play.document = part.document;
    part.play.start(0);
  }
  nameSliders(part);
  part.dataset.ready = "yes";
}

if (typeof module !== "undefined") module.exports = { project, learn, reward, ellipse, evenLine };
else document.addEventListener("DOMContentLoaded", () => document.querySelectorAll("div.play").forEach(part => {
  show(part).catch(error => {                           // the picture stays
    part.querySelector(".play-card")?.remove();
    console.error(error);
  });
}));
