package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"
)

// inspected is "ndbridge inspect" that runs in this process, and a browser that has opened its page.
type inspected struct {
	address *url.URL
	client  *http.Client
	stop    context.CancelFunc
	status  chan int
	stderr  *bytes.Buffer
}

func inspectProgram(t *testing.T, args ...string) *inspected {
	t.Helper()
	return inspectWith(t, append([]string{"--script", "testdata/inspected.py", "--python", python(t)}, args...)...)
}

func inspectWith(t *testing.T, args ...string) *inspected {
	t.Helper()
	in, out := io.Pipe()
	ctx, stop := context.WithCancel(t.Context())
	i := &inspected{stop: stop, status: make(chan int, 1), stderr: new(bytes.Buffer)}
	go func() {
		i.status <- run(ctx, append([]string{"inspect"}, args...), out, i.stderr)
		_ = out.Close() // a pipe of this process
	}()
	t.Cleanup(stop)
	line, err := bufio.NewReader(in).ReadString('\n')
	if err != nil {
		t.Fatalf("no address; status %d:\n%s", <-i.status, i.stderr)
	}
	if i.address, err = url.Parse(strings.TrimSpace(line)); err != nil {
		t.Fatal(err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	i.client = &http.Client{Jar: jar, Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // TestInspectOutside compares the fingerprint
	}}
	if i.address.Scheme == "https" {
		return i
	}
	if body := i.get(t, i.address.String()); !strings.Contains(body, "main.js") {
		t.Fatalf("the page is %q", body)
	}
	return i
}

// end interrupts the command and waits for it.
func (i *inspected) end(t *testing.T) {
	t.Helper()
	i.stop()
	if status := <-i.status; status != statusInterrupted {
		t.Errorf("status %d:\n%s", status, i.stderr)
	}
}

func (i *inspected) get(t *testing.T, address string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := i.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close() // it was read
	return fmt.Sprintf("%d %s", resp.StatusCode, body)
}

// export is the answer to a request for a file.
func (i *inspected) export(t *testing.T, kind, name string) string {
	t.Helper()
	u := *i.address
	u.Path, u.RawQuery = "/export/"+kind, url.Values{"name": {name}}.Encode()
	return i.get(t, u.String())
}

// longRequest is more than the server reads of a request at once.
const longRequest = 1 << 16

// page opens a websocket as a page does, and says what it looks at.
func (i *inspected) page(t *testing.T, request string) *websocket.Conn {
	t.Helper()
	u := *i.address
	u.Path, u.RawQuery = "/socket", ""
	conn, resp, err := websocket.Dial(t.Context(), u.String(), &websocket.DialOptions{
		HTTPClient: i.client, HTTPHeader: http.Header{"Origin": {u.Scheme + "://" + u.Host}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if resp.Body != nil {
		_ = resp.Body.Close() // there is none
	}
	conn.SetReadLimit(1 << 24)
	err = conn.Write(t.Context(), websocket.MessageText, []byte(request))
	if err != nil && len(request) < longRequest { // the server may close while it reads a longer one
		t.Fatal(err)
	}
	return conn
}

// until reads messages of a page until one satisfies.
func until(t *testing.T, conn *websocket.Conn, enough func(m map[string]any) bool) {
	t.Helper()
	for {
		kind, text, err := conn.Read(t.Context())
		if err != nil {
			t.Error(err)
			return
		}
		var m map[string]any
		if kind == websocket.MessageBinary {
			continue
		}
		if err := json.Unmarshal(text, &m); err != nil {
			t.Error(err)
			return
		}
		if enough(m) {
			return
		}
	}
}

const lookAtField = `{"look": {"name": "field", "auto": true, "width": 256, "height": 256, "line": -1}}`

// TestInspectManyPages reads an array once for a hundred pages; one that does not take what it is sent holds up nobody.
func TestInspectManyPages(t *testing.T) {
	t.Parallel()
	i := inspectProgram(t)
	i.page(t, lookAtField) // reads nothing
	var all sync.WaitGroup
	for range 100 {
		conn := i.page(t, lookAtField)
		all.Go(func() {
			last := 0.0
			changes := 0
			until(t, conn, func(m map[string]any) bool {
				if figures, ok := m["figures"].(map[string]any); ok && figures["max"] != last {
					last, _ = figures["max"].(float64)
					changes++
				}
				return changes == 3
			})
		})
	}
	all.Wait()
	conn := i.page(t, lookAtField)
	told := 0
	until(t, conn, func(m map[string]any) bool {
		if m["topic"] != "budget" || m["pages"].(float64) < 102 { //nolint:errcheck,forcetypeassert // the test would fail
			return false
		}
		if told++; told < 2 {
			return false // it counts what was read for each page that came, at once
		}
		if reads := m["reads"].(float64); m["arrays"] != 1.0 || reads > 20 { //nolint:errcheck,forcetypeassert // as above
			t.Errorf("%v arrays are read, %v times a second", m["arrays"], reads)
		}
		return true
	})
	i.end(t)
	until(t, conn, func(m map[string]any) bool { return m["state"] == "left" })
}

// TestInspectNothing has a page show an array without elements: a picture of nothing, which is no error.
func TestInspectNothing(t *testing.T) {
	t.Parallel()
	i := inspectProgram(t)
	for _, image := range []string{"", "HWC"} {
		conn := i.page(t, `{"look": {"name": "vacant", "width": 8, "height": 8, "image": "`+image+`"}}`)
		for {
			kind, text, err := conn.Read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if kind != websocket.MessageBinary {
				continue
			}
			var p struct {
				Error      string
				Width      int
				Low, Y, X  *float64
				Rows       [2]int
				Kind, Name string
			}
			if err := json.Unmarshal(text[4:], &p); err != nil || p.Error != "" || p.Width != 0 || p.Low != nil || p.Name != "vacant" {
				t.Errorf("%s, %v", text, err)
			}
			break
		}
		_ = conn.CloseNow() // the server may close first
	}
	i.end(t)
}

// TestInspectRequests closes pages that ask for what no page of ours asks for.
func TestInspectRequests(t *testing.T) {
	t.Parallel()
	i := inspectProgram(t)
	for _, request := range []string{
		`nonsense`, `{"look": {"name": "", "width": 8, "height": 8}}`, `{"look": {"name": "field"}}`, `{"pin": true}`,
		`{"look": {"name": "field", "width": 1e9, "height": 1}}`,
		`{"look": {"name": "` + strings.Repeat("x", 1<<17) + `", "width": 8, "height": 8}}`,
	} {
		conn := i.page(t, request)
		for {
			if _, _, err := conn.Read(t.Context()); err != nil {
				if got := websocket.CloseStatus(err); got != websocket.StatusPolicyViolation && got != websocket.StatusMessageTooBig {
					t.Errorf("%.60s: %v", request, err)
				}
				break
			}
		}
	}
	// What an array does not have becomes what it has.
	conn := i.page(t, `{"look": {"name": "field", "y": 7, "x": -5, "at": [9, 9, 9], "rows": [600, 2], "columns": [-3, 1], "width": 8, "height": 8, "line": 99, "image": "XYZ"}}`)
	until(t, conn, func(m map[string]any) bool { return m["topic"] == "array" && m["figures"] != nil })
	// The tree has names that are too long to be looked at.
	for name, says := range map[string]string{"nothing": "nothing", strings.Repeat("x", 5000): "at most 4096 bytes"} {
		conn = i.page(t, `{"look": {"name": "`+name+`", "width": 8, "height": 8}}`)
		until(t, conn, func(m map[string]any) bool {
			text, _ := m["error"].(string)
			return m["topic"] == "array" && strings.Contains(text, says)
		})
	}
	i.end(t)
}

// TestInspectExports gives arrays as files.
func TestInspectExports(t *testing.T) {
	t.Parallel()
	i := inspectProgram(t)
	conn := i.page(t, lookAtField)
	until(t, conn, func(m map[string]any) bool { return m["topic"] == "array" && m["figures"] != nil }) // all arrays are there
	for _, c := range []struct{ kind, name, want string }{
		{"csv", "numbers", "200 0,1,2,3\n4,5,6,7\n8,9,10,11\n"},
		{"csv", "cube", "200 0,0,0,1\n0,1,2,3\n1,0,4,5\n1,1,6,7\n"},
		{"csv", "line", "200 0.5\nNaN\n+Inf\n"},
		{"csv", "thirds", "200 0.3333333333333333,5e-324\n"},
		{"csv", "tenths", "200 0.1+0j,0.33333334-0.1j\n"},
		{"csv", "tenth", "200 0.1\n0.1\n"},
		{"npy", "numbers", "200 \x93NUMPY"},
		{"png", "photo", "200 \x89PNG"},
		{"npy", "nothing", "404 "},
		{"exe", "numbers", "404 "},
		{"png", "", "404 "},
	} {
		if got := i.export(t, c.kind, c.name); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s as %s: %.80q, want %q", c.name, c.kind, got, c.want)
		}
	}
	i.end(t)
}

// TestInspectOutside speaks TLS with a certificate of its own, and asks for the password.
func TestInspectOutside(t *testing.T) {
	t.Parallel()
	i := inspectProgram(t, "--listen", "0.0.0.0:0", "--password-file", file(t, t.TempDir(), "password", "open sesame\n"))
	if i.address.Scheme != "https" || i.address.RawQuery != "" {
		t.Errorf("the address is %s", i.address)
	}
	i.address.Host = "127.0.0.1:" + i.address.Port()
	if body := i.get(t, i.address.String()); !strings.HasPrefix(body, "401 ") || strings.Contains(body, "main.js") || !strings.Contains(body, `type="password"`) {
		t.Errorf("without the password: %.200s", body)
	}
	login := i.address.JoinPath("login").String()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, login, strings.NewReader("password=open+sesame"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", "https://"+i.address.Host)
	resp, err := i.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close() // it was not asked for
	sum := sha256.Sum256(resp.TLS.PeerCertificates[0].Raw)
	if body := i.get(t, i.address.String()); !strings.HasPrefix(body, "200 ") || !strings.Contains(body, "main.js") {
		t.Errorf("with the password: %.200s", body)
	}
	conn := i.page(t, lookAtField)
	until(t, conn, func(m map[string]any) bool { return m["topic"] == "array" && m["figures"] != nil })
	i.end(t)
	if said := strings.ReplaceAll(i.stderr.String(), ":", ""); !strings.Contains(said, fmt.Sprintf("%X", sum)) {
		t.Errorf("standard error lacks the fingerprint %X:\n%s", sum, i.stderr)
	}
}

// TestInspectUsage refuses what would let anybody look.
func TestInspectUsage(t *testing.T) {
	t.Parallel()
	begin := []string{"inspect", "--script", "testdata/inspected.py", "--python", python(t)}
	empty := file(t, t.TempDir(), "password", "\n")
	for _, c := range []struct {
		args   []string
		status int
		stderr string
	}{
		{[]string{"--listen", "0.0.0.0:0"}, 1, "--password-file"},
		{[]string{"--listen", "here"}, 1, "127.0.0.1:8080"},
		{[]string{"--password-file", empty}, 1, "its first line is empty"},
		{[]string{"--tls-cert", "x"}, 2, "one needs the other"},
		{[]string{"--budget", "0"}, 2, "more than 0"},
		{[]string{"--alarm", "nonsense"}, 2, "--alarm nonsense"},
		{[]string{"--step", "no name"}, 2, "--step no name"},
		{[]string{"name"}, 2, "takes no names"},
	} {
		command(t, append(begin, c.args...)...).want(t, c.status, "", c.stderr)
	}
}

// TestInspectWatches raises alarms before a page is open, which metrics tell, sets others as a page does, has one refused, and searches.
func TestInspectWatches(t *testing.T) {
	t.Parallel()
	i := inspectProgram(t, "--alarm", "nan", "--alarm", "inf")
	for metrics := ""; !strings.Contains(metrics, `ndbridge_array_alarm{array="line",alarm="nan"} 1`); {
		u := *i.address
		u.Path, u.RawQuery = "/metrics", ""
		if metrics = i.get(t, u.String()); !strings.HasPrefix(metrics, "200") {
			t.Fatal(metrics)
		}
	}
	watched := func(texts ...any) func(map[string]any) bool {
		return func(m map[string]any) bool {
			return m["topic"] == "alarms" && slices.Equal(m["watched"].([]any), texts) //nolint:errcheck,forcetypeassert // the test would fail
		}
	}
	conn := i.page(t, `{"alarms": {"alarms": ["nan", "soon>1"]}}`)
	until(t, conn, func(m map[string]any) bool {
		text, _ := m["refused"].(string)
		return strings.Contains(text, `"soon" is not a figure`) && watched("nan", "inf")(m)
	})
	conn = i.page(t, `{"alarms": {"alarms": ["numbers: max>=11"], "all": true}}`)
	until(t, conn, watched("numbers: max>=11"))
	until(t, conn, func(m map[string]any) bool {
		events, _ := m["events"].([]any)
		return len(events) == 3 && events[2].(map[string]any)["name"] == "numbers" //nolint:errcheck,forcetypeassert // as above
	})
	conn = i.page(t, `{"alarms": {"alarms": ["nan"], "step": "stap"}}`)
	until(t, conn, func(m map[string]any) bool {
		text, _ := m["uncounted"].(string)
		return strings.Contains(text, "stap: not found") && m["step"] == "stap"
	})
	for pattern, want := range map[string]string{"n*rs": "numbers", "parts": `parts["tail"]`, "numbers": "numbers", "nothing*": "", "a[": "name"} {
		conn := i.page(t, fmt.Sprintf(`{"find": %q}`, pattern))
		until(t, conn, func(m map[string]any) bool {
			if m["topic"] != "found" {
				return false
			}
			if got := fmt.Sprint(m["entries"], m["error"]); !strings.Contains(got, want) {
				t.Errorf("%s: %s", pattern, got)
			}
			return true
		})
	}
	i.end(t)
}
