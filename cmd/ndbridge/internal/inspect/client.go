package inspect

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/ndbridge/ndbridge/internal/watch"
)

const (
	maxClients = 1000
	maxRequest = 64 << 10
	// patience is how long a page may take no message at all.
	patience = 20 * time.Second
)

// client is one page.
type client struct {
	out *outbox

	// The hub's lock guards what follows.
	sees *sight               // what it looks at; nil: nothing
	has  map[string]time.Time // the last point of a series that it has, by name

	search context.CancelFunc // ends its last search; nil: there is none
}

// request is what a page asks for. Look says what it shows from now on.
type request struct {
	Look   *look    `json:"look"`
	Pin    *bool    `json:"pin"`    // keep the array as it is now, to compare with; or drop that
	Find   *string  `json:"find"`   // search for a pattern of names, or below a name; "": for nothing any more
	Alarms *watched `json:"alarms"` // what is watched from now on
}

// errEnded closes websockets when the server ends.
var errEnded = errors.New("ndbridge inspect has ended")

func (h *hub) room() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.clients) < maxClients
}

// socket serves the websocket of a page.
func (s *Server) socket(w http.ResponseWriter, r *http.Request) {
	if !s.hub.room() {
		http.Error(w, "too many pages are open", http.StatusServiceUnavailable)
		return
	}
	conn, err := websocket.Accept(w, r, nil) // checks the origin once more
	if err != nil {
		return // it has answered
	}
	s.sockets.Add(1)
	defer s.sockets.Done()
	defer context.AfterFunc(s.hard, func() { cut(r) })() //nolint:contextcheck // the server's, not the request's
	var listening sync.WaitGroup
	defer listening.Wait()
	defer conn.CloseNow() //nolint:errcheck // it may be closed already
	conn.SetReadLimit(maxRequest)
	c := &client{out: newOutbox(), has: map[string]time.Time{}}
	ctx, cancel := context.WithCancelCause(s.ctx)
	defer cancel(nil)
	s.hub.join(c)
	defer s.hub.leave(c)
	listening.Go(func() { cancel(s.listen(conn, c)) }) //nolint:contextcheck // it ends when the connection does
	err = s.send(ctx, conn, c)                         //nolint:contextcheck // the server's context
	if errors.Is(err, errEnded) {
		_ = conn.Close(websocket.StatusGoingAway, errEnded.Error()) // the page may have gone
	}
}

// connKey is the key of a request's connection.
type connKey struct{}

// cut closes the connection of a page that may not answer. Its websocket would wait for it, and TLS would say goodbye.
func cut(r *http.Request) {
	conn, _ := r.Context().Value(connKey{}).(net.Conn)
	if over, ok := conn.(*tls.Conn); ok {
		conn = over.NetConn()
	}
	if conn != nil {
		_ = conn.Close() // the page may have gone
	}
}

// listen takes the requests of a page until it has gone.
func (s *Server) listen(conn *websocket.Conn, c *client) error {
	for {
		kind, text, err := conn.Read(context.Background()) // until it is closed: the end of a context would close it without a word
		if err != nil {
			return err
		}
		var asked request
		if kind != websocket.MessageText || json.Unmarshal(text, &asked) != nil {
			return conn.Close(websocket.StatusPolicyViolation, "not a request")
		}
		if err := s.hub.ask(c, asked); err != nil {
			return conn.Close(websocket.StatusPolicyViolation, err.Error())
		}
	}
}

// send gives a page what is new, for as long as it takes it.
func (s *Server) send(ctx context.Context, conn *websocket.Conn, c *client) error {
	for {
		m, err := c.out.next(ctx)
		if err != nil {
			return err
		}
		kind := websocket.MessageText
		if m.binary {
			kind = websocket.MessageBinary
		}
		writing, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		took, err := watch.OnThread(func() error { return conn.Write(writing, kind, m.bytes) })
		cancel()
		if m.pays != nil {
			m.pays.Charge(took)
		}
		if err != nil {
			return err
		}
	}
}
