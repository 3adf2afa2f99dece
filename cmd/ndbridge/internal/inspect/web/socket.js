// The connection with the server. It comes back by itself.

const patience = [250, 500, 1000, 2000, 4000];

/**
 * @typedef {object} Listener
 * @property {(message: any) => void} text a message
 * @property {(header: any, payload: DataView) => void} picture
 * @property {(open: boolean) => void} state
 * @property {() => void} refused the server does not know this page
 */

export class Socket {
  /** @param {Listener} listener */
  constructor(listener) {
    this.listener = listener;
    this.tries = 0;
    /** @type {object | null} */
    this.look = null;
    /** @type {WebSocket | null} */
    this.ws = null;
    this.over = false; // the server has said that it ends
    this.connect();
  }

  connect() {
    const url = new URL("socket", location.href);
    url.protocol = url.protocol.replace("http", "ws");
    url.search = url.hash = "";
    const ws = new WebSocket(url);
    ws.binaryType = "arraybuffer";
    ws.onopen = () => {
      this.ws = ws;
      this.tries = 0;
      this.listener.state(true);
      if (this.look) this.send({ look: this.look });
    };
    ws.onmessage = ({ data }) => {
      if (typeof data === "string") return this.listener.text(JSON.parse(data));
      const length = new DataView(data).getUint32(0, true);
      const header = JSON.parse(new TextDecoder().decode(new Uint8Array(data, 4, length)));
      this.listener.picture(header, new DataView(data, 4 + length));
    };
    ws.onclose = async () => {
      this.ws = null;
      this.listener.state(false);
      if (this.over) return;
      if (await this.refused()) this.listener.refused();
      else setTimeout(() => this.connect(), patience[Math.min(this.tries++, patience.length - 1)]);
    };
  }

  /** Whether there is a server that does not know this page: one that was started again. A websocket does not say why it was refused. */
  async refused() {
    try {
      return (await fetch("socket", { cache: "no-store" })).status === 401;
    } catch {
      return false; // there is none
    }
  }

  /** @param {object} message */
  send(message) {
    if (this.ws?.readyState === WebSocket.OPEN) this.ws.send(JSON.stringify(message));
  }

  /**
   * Says what the page shows from now on.
   * @param {object | null} look
   */
  see(look) {
    this.look = look;
    this.send({ look });
  }
}
