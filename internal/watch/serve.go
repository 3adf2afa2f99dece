package watch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"time"
)

// postWait bounds a webhook.
const postWait = 10 * time.Second

// Listen listens at an address of this machine's own, which nobody else can reach. An address without a host is one
// of 127.0.0.1.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("%q is no address such as 127.0.0.1:9400", address)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	if !loopback(host) {
		return nil, fmt.Errorf("%s can be reached from other machines; only 127.0.0.1, ::1 and localhost are served", host)
	}
	return new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(host, port))
}

func loopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

// Serve serves h until ctx ends. A request under a name that is not this machine's own is refused: so pages of other sites
// cannot read what is served, even if their name leads here.
func Serve(ctx context.Context, l net.Listener, h http.Handler) error {
	server := &http.Server{
		ReadHeaderTimeout: postWait,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			host, _, err := net.SplitHostPort(r.Host)
			if err != nil {
				host = r.Host
			}
			if !loopback(host) {
				http.Error(w, "only for this machine", http.StatusForbidden)
				return
			}
			h.ServeHTTP(w, r)
		}),
	}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })() // Serve returns then
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Post sends an alarm to a webhook: a JSON object of the event, with its line as "text", which chats show.
func Post(ctx context.Context, url, program string, e Event) error {
	body, err := json.Marshal(struct {
		Text    string `json:"text"`
		Program string `json:"program"`
		Event
	}{e.String(), program, e})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, postWait)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close() //nolint:errcheck // nothing is lost
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 1<<16))
	if answer.StatusCode >= 300 {
		return fmt.Errorf("the webhook answered %s", answer.Status)
	}
	return nil
}
