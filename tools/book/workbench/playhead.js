// Where in a run one is, and what moves that: playing, stepping, the slider.

/** The speeds; the first ones are slow motion. */
export const RATES = [0.25, 0.5, 1, 2, 4];
/** How long somebody who wants no motion looks at each thing, in milliseconds. */
const STILL = 900;
/** How often the clock is set, in milliseconds, and how much time passes at most when the page comes late. */
const CLOCK = 100;
const LATE = 250;

export class Playhead {
  /** `moved(isPlaying)` is called at each moment that is to be shown. */
  constructor(moved) {
    this.moved = moved;
    this.rate = 1;
    this.at = 0;
    /** From where the whole is played. */
    this.home = 0;
    this.until = null;
    this.calm = matchMedia("(prefers-reduced-motion: reduce)");
  }

  get isPlaying() { return this.until !== null; }

  load(schedule, at) {
    this.stop();
    this.schedule = schedule;
    this.at = Math.min(at, schedule.length);
  }

  play(until = this.schedule.length) {
    if (this.at >= this.schedule.length - 0.5) this.at = this.home;
    this.stop();
    this.until = until;
    if (this.calm.matches) this.timer = setTimeout(() => this.leap(), STILL / 3);
    else this.wait(performance.now());
    this.moved(true);
  }

  pause() {
    this.stop();
    this.moved(false);
  }

  toggle() { if (this.isPlaying) this.pause(); else this.play(); }

  goto(at) {
    this.stop();
    this.at = Math.max(0, Math.min(at, this.schedule.length));
    this.moved(false);
  }

  /** To where the whole is played from; from there, to what prepares it. */
  begin() { this.goto(this.at > this.home + 1 ? this.home : 0); }

  /** One thing on, which is played; or one back. */
  step(way) {
    const to = this.schedule.stop(this.at, way);
    if (way < 0 || this.calm.matches) this.goto(to);
    else this.play(to);
  }

  stop() {
    clearTimeout(this.timer);
    this.until = null;
  }

  tick(before) {
    const now = performance.now();
    this.at = Math.min(this.at + Math.min(LATE, now - before) * this.rate, this.until);
    if (this.at >= this.until) return this.pause();
    this.moved(true);
    this.wait(now);
  }

  /** Until something begins or ends, or the clock is to be set. What flies meanwhile is moved by the browser. */
  wait(now) {
    const next = Math.min(this.schedule.change(this.at), this.until);
    this.timer = setTimeout(() => this.tick(now), Math.min(CLOCK, (next - this.at) / this.rate));
  }

  /** From stop to stop. */
  leap() {
    this.at = Math.min(this.schedule.stop(this.at, 1), this.until);
    if (this.at >= this.until) return this.pause();
    this.moved(true);
    this.timer = setTimeout(() => this.leap(), STILL / this.rate);
  }
}
