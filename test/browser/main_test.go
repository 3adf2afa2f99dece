// Package browser tests the page of ndbridge inspect in a real browser. It is a module of its own, so that what drives the
// browser is none of what users get.
package browser

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// patience is how long a test waits for what must come: longer than any machine takes.
const patience = time.Minute

func need(tb testing.TB, variable string) string {
	tb.Helper()
	value := os.Getenv(variable)
	if value == "" {
		tb.Fatalf("%s is not set; run make test-browser", variable)
	}
	return value
}

// inspect runs a program of testdata with a page, and gives the page's address.
func inspect(t *testing.T, program string, args ...string) string {
	t.Helper()
	return inspectWith(t, nil, program, args...)
}

// inspectWith is inspect with flags.
func inspectWith(t *testing.T, flags []string, program string, args ...string) string {
	t.Helper()
	bridge := filepath.Join(need(t, "NDBRIDGE_LIB"), "..", "ndbridge")
	all := append([]string{"inspect", "--script", filepath.Join("testdata", program), "--python", need(t, "NDBRIDGE_TEST_PYTHON")}, flags...)
	cmd := exec.Command(bridge, append(append(all, "--"), args...)...) //nolint:noctx // it is ended below, in order
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended with its program
		_ = cmd.Wait()                          // its status is that of a signal, or the program's
		if t.Failed() {
			t.Logf("ndbridge inspect said:\n%s", said.String())
		}
	})
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("no address: %v", err)
	}
	return strings.TrimSpace(address)
}

// allocator starts the browser, once for all tests.
var allocator = sync.OnceValue(func() context.Context {
	dir := os.Getenv("NDBRIDGE_TEST_BROWSER")
	ctx, _ := chromedp.NewExecAllocator(context.Background(), // it ends with the tests
		chromedp.ExecPath(filepath.Join(dir, "chromium")), chromedp.NoSandbox, chromedp.Flag("no-zygote", true), chromedp.Flag("headless", "shell"),
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("hide-scrollbars", true), chromedp.Flag("lang", "en-US"),
		chromedp.Env("LANG=en_US.UTF-8", "LC_ALL=en_US.UTF-8", "LD_LIBRARY_PATH="+filepath.Join(dir, "lib"), "FONTCONFIG_FILE="+filepath.Join(dir, "fonts.conf")))
	ctx, _ = chromedp.NewContext(ctx)
	return ctx
})

// page is one page in a browser that knows of no other.
type page struct {
	t   *testing.T
	ctx context.Context //nolint:containedctx // of the browser

	mu       sync.Mutex
	problems []string
}

// open opens an address. What goes wrong in the page fails the test.
func open(t *testing.T, address string, width, height int64) *page {
	t.Helper()
	need(t, "NDBRIDGE_TEST_BROWSER")
	browser := allocator()
	if err := chromedp.Do(browser); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	p := &page{t: t, ctx: ctx}
	if err := chromedp.Listen(ctx, p.heard); err != nil {
		t.Fatal(err)
	}
	p.do(chromedp.EmulateViewport(width, height), chromedp.Navigate(address))
	t.Cleanup(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, problem := range p.problems {
			t.Errorf("the page: %s", problem)
		}
	})
	return p
}

// heard notes exceptions, and what the browser complains of.
func (p *page) heard(event any) {
	problem := ""
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		text, _ := json.Marshal(e.ExceptionDetails) // it is for people
		problem = string(text)
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError {
			problem = e.Entry.Text + " " + e.Entry.URL
		}
	}
	if problem != "" {
		p.mu.Lock()
		p.problems = append(p.problems, problem)
		p.mu.Unlock()
	}
}

// forgive forgets what went wrong until now, as it should.
func (p *page) forgive() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.problems = nil
}

func (p *page) do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	if err := chromedp.Do(p.ctx, steps...); err != nil {
		p.t.Fatal(err)
	}
}

// eval gives the value of an expression.
func eval[T any](p *page, expression string) T {
	p.t.Helper()
	value, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatalf("%s: %v", expression, err)
	}
	return value
}

// until waits until an expression is true.
func (p *page) until(expression string) {
	p.t.Helper()
	for end := time.Now().Add(patience); !eval[bool](p, "!!("+expression+")"); {
		if time.Now().After(end) {
			p.t.Fatalf("never came true: %s\nthe page (%s) says: %s", expression, eval[string](p, "document.activeElement.id + ' ' + document.querySelector('#search').value"), eval[string](p, "document.body.innerText"))
		}
		p.do(chromedp.Sleep(20 * time.Millisecond))
	}
}

// keys types keys into what has the focus.
func (p *page) keys(keys string) {
	p.t.Helper()
	p.do(chromedp.KeyEvent(keys))
}

// quote writes a text as JavaScript.
func quote(text string) string {
	quoted, _ := json.Marshal(text) // it cannot fail
	return string(quoted)
}

// show opens an array once the tree has it.
func (p *page) show(name string) {
	p.t.Helper()
	p.until("[...document.querySelectorAll('#tree [data-name]')].some((n) => n.dataset.name === " + quote(name) + ")")
	p.do(chromedp.Evaluate[chromedp.Void]("location.hash = encodeURIComponent(" + quote(name) + ")"))
	p.until("document.querySelector('.array h1')")
}

// figure gives the text of a figure.
func figure(name string) string {
	return "document.querySelector('[data-figure=" + name + "] dd')?.textContent"
}
