package browser

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// in is what a row of the tree has.
func in(name, what string) string {
	return fmt.Sprintf("document.querySelector(`#tree [data-name=%q] %s`)", name, what)
}

const seen = "?.getClientRects().length > 0"

// TestTreeDetails shows of each name what is known, in its row or below it, with keys and on a phone as well.
func TestTreeDetails(t *testing.T) {
	address := inspect(t, "training.py")
	p := open(t, address, 1280, 860)
	p.until(in("numbers", ".facts") + "?.innerText.replace(/\\s+/g, ' ') === 'float64 100×100 78 KiB'")
	p.until(in("loss", ".mark") + "?.getAttribute('aria-label').startsWith('published')")
	p.until(in("numbers", ".details") + "?.textContent === 'shared-heap · numpy'") // as it would be reached
	if eval[bool](p, in("numbers", ".mark")+seen+" || "+in("numbers", ".details")+seen) {
		t.Error("an array that nobody looks at has a mark, or details that nobody has asked for")
	}
	p.show("train().bias")
	p.until(in("train().bias", ".mark") + "?.className === 'mark  live' && " + in("train().bias", ".details") + seen)
	p.until(`/^live · mean \+0\.0\d+\/s · shared-heap · numpy$/.test(` + in("train().bias", ".details") + ".textContent)")
	p.until(`/^published, copy · mean \S+\/s · \d+(\.\d)? versions\/s · staged \(converted\) · python · 8 B · read-only$/.test(` + in("loss", ".details") + "?.textContent)")
	p.show("numbers") // nobody looks at the other any more
	p.until(in("train().bias", ".mark") + ".hidden && " + in("numbers", ".mark") + ".title === 'live' && " + in("train().bias", ".details") + ".textContent === 'shared-heap · numpy'")
	// With keys the row has them that keys have moved to.
	p.do(chromedp.Focus(chromedp.CSS("#tree")))
	p.keys(kb.End + kb.ArrowUp)
	p.until("document.querySelector('#tree .active .details')" + seen + " && document.querySelector('#tree .active').textContent.includes('int')")
	p.do(chromedp.Evaluate[chromedp.Void]("[...document.querySelectorAll('.finding button')].find((b) => b.textContent === 'details').focus()"))
	p.keys(kb.Enter)
	p.until("[...document.querySelectorAll('#tree .details')].every((n) => n.getClientRects().length > 0)")
	p.do(chromedp.Reload())
	p.until(in("photo", ".details") + seen) // it stays so

	phone := open(t, address, 390, 844)
	phone.until(in("numbers", ".details"))
	phone.do(chromedp.Click(chromedp.CSS("#menu")), chromedp.Click(chromedp.CSS(".finding button")))
	phone.until(in("numbers", ".details") + seen)
	if eval[bool](phone, "document.querySelector('#tree').scrollWidth > document.querySelector('#tree').clientWidth") {
		t.Error("the tree scrolls sideways")
	}
}

// TestTreeMarks marks what is looked at if alarms are of all arrays, and nothing any more once the program is gone.
func TestTreeMarks(t *testing.T) {
	order := filepath.Join(t.TempDir(), "stop")
	p := open(t, inspectWith(t, []string{"--alarm", "nan"}, "fails.py", order), 1280, 860)
	p.until(in("values", ".mark") + "?.title === 'live'")
	if err := os.WriteFile(order, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.until("document.body.dataset.state === 'gone' && " + in("values", ".mark") + ".hidden")
}

// TestTreeValues has the values and lines of arrays of one element that are no variables.
func TestTreeValues(t *testing.T) {
	orders := filepath.Join(t.TempDir(), "orders")
	lines := "m = type('M', (), {})()\nm.count = np.array(7)\nm.part = np.float64(0.5)\nm.bad, m.low = np.full(1, np.nan), np.array(-np.inf)\nd = {'n': np.full(1, 9.0)}\n"
	if err := os.WriteFile(orders, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	p := open(t, inspectWith(t, nil, "ordered.py", orders), 1280, 860)
	for name, value := range map[string]string{"m.count": "7", "m.part": "0.5", "m.bad": "NaN", "m.low": "−∞", `d["n"]`: "9"} {
		row := fmt.Sprintf("[...document.querySelectorAll('#tree [data-name]')].find((n) => n.dataset.name === %q)", name)
		card := fmt.Sprintf("[...document.querySelectorAll('[data-scalar]')].find((n) => n.dataset.scalar === %q)", name)
		p.until(row + "?.querySelector('.now')?.textContent === '" + value + "' && " + card + "?.querySelector('.value').textContent === '" + value + "'")
	}
}

// TestScalarsMakeRoom has a variable come when there are more arrays of one element below others than lines are drawn.
func TestScalarsMakeRoom(t *testing.T) {
	orders := filepath.Join(t.TempDir(), "orders")
	write := func(lines string) {
		if err := os.WriteFile(orders, []byte(lines), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const many = "d = {str(i): np.zeros(1) for i in range(150)}\n"
	write(many)
	p := open(t, inspectWith(t, nil, "ordered.py", orders), 1280, 860)
	p.until("document.querySelectorAll('[data-scalar]').length === 100")
	write(many + "loss = np.ones(1)\n")
	p.until("document.querySelector('[data-scalar=loss] .value')?.textContent === '1' && document.querySelectorAll('[data-scalar]').length === 100")
}

// TestPressedWhileTheListChanges: a row that is another one when the button is let go is the one that was pressed all the same.
func TestPressedWhileTheListChanges(t *testing.T) {
	orders := filepath.Join(t.TempDir(), "orders")
	p := open(t, inspectWith(t, nil, "ordered.py", orders), 1280, 860)
	p.until(in("x", ".label"))
	const send = "%s.dispatchEvent(new PointerEvent(%q, {bubbles: true}))"
	p.do(chromedp.Evaluate[chromedp.Void]("window.before = " + in("x", ".label")))
	p.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(send, "window.before", "pointerdown")))
	if err := os.WriteFile(orders, []byte("a = np.zeros(3)\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.until("!window.before.isConnected && " + in("a", ".label"))
	p.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(send, in("x", ".label"), "pointerup")))
	p.until("document.querySelector('.array h1')?.textContent === 'x'")
}

// TestExactNameFirst: Enter opens the name that was typed, and not one before it in the list that merely has it.
func TestExactNameFirst(t *testing.T) {
	orders := filepath.Join(t.TempDir(), "orders")
	if err := os.WriteFile(orders, []byte("all_x, loss_total, loss = np.ones(3), np.ones(4), np.ones(5)\nm = {'sub_lr': np.ones(2), 'lr': np.ones(3)}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := open(t, inspectWith(t, nil, "ordered.py", orders), 1280, 860)
	p.until(in("loss", ".label") + " && document.querySelector('#tree').textContent.includes('sub_lr')")
	for text, name := range map[string]string{"x": "x", "loss": "loss", "lr": `m["lr"]`} {
		p.keys("/")
		p.until("document.activeElement.id === 'search'")
		p.do(chromedp.Evaluate[chromedp.Void]("document.activeElement.select()"))
		p.keys(text)
		p.until(fmt.Sprintf("document.querySelector('#search').value === %q", text))
		p.keys(kb.Enter)
		p.until(fmt.Sprintf("document.querySelector('.array h1')?.textContent === %q", name))
		p.keys(kb.Escape)
		p.until("document.activeElement.id === 'tree'")
	}
}
