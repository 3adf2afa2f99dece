package inspect

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// guard decides who may see the page. Whoever opens the address with the token, or knows the password if there is
// one, gets a cookie; everything else needs the cookie.
type guard struct {
	scheme string // "http" or "https"
	cookie string // its name: a browser sends a host's cookies to all ports
	token  string // "": there is a password
	secret string // the cookie's value
	names  []string

	password [sha256.Size]byte

	mu     sync.Mutex
	wrong  int       // passwords one after the other
	closed time.Time // until when no password is looked at
}

// newGuard makes the guard of a server at an address.
func newGuard(at net.Addr, secure bool, password string, names []string) *guard {
	g := &guard{scheme: "http", secret: rand.Text(), names: names}
	port := "0"
	if _, p, err := net.SplitHostPort(at.String()); err == nil {
		port = p
	}
	g.cookie = "ndbridge-" + port
	if secure {
		g.scheme = "https"
	}
	if password == "" {
		g.token = rand.Text()
	} else {
		g.password = sha256.Sum256([]byte(password))
	}
	return g
}

// policy is what the page may do: use what came with it, and talk to where it came from.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// protect lets through to next what comes from the page itself.
func (g *guard) protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for key, value := range map[string]string{
			"Content-Security-Policy":      policy,
			"X-Content-Type-Options":       "nosniff",
			"Referrer-Policy":              "same-origin", // with none, a browser would say of the form for the password that it comes from nowhere
			"Cross-Origin-Opener-Policy":   "same-origin",
			"Cross-Origin-Resource-Policy": "same-origin",
			"Cache-Control":                "no-store",
		} {
			w.Header().Set(key, value)
		}
		switch {
		case !g.known(r.Host):
			http.Error(w, "this server is not known by that name", http.StatusMisdirectedRequest)
		case !g.sameOrigin(r):
			http.Error(w, "another page must not ask this", http.StatusForbidden)
		case r.URL.Path == "/login" && r.Method == http.MethodPost && g.token == "":
			g.login(w, r)
		case g.hasCookie(r):
			next.ServeHTTP(w, r)
		case r.URL.Path == "/" && g.isToken(r.URL.Query().Get("token")):
			// No redirect: after one, a browser that came here from another site does not send the cookie. The
			// page takes the token out of its address.
			g.admit(w)
			next.ServeHTTP(w, r)
		case r.URL.Path == "/metrics" || r.URL.Path == "/stats.json" || strings.HasPrefix(r.URL.Path, "/export/"):
			g.scraped(w, r, next)
		case g.token == "" && (r.URL.Path == "/" || slices.Contains(ofLogin, strings.TrimPrefix(r.URL.Path, "/"))):
			loginPage(w, r, http.StatusUnauthorized)
		default:
			http.Error(w, "open the address that ndbridge inspect has printed", http.StatusUnauthorized)
		}
	})
}

// known reports whether a request means this server. A name that an attacker had led here after its page was loaded
// (DNS rebinding) is none of ours; addresses cannot be led anywhere.
func (g *guard) known(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	name = strings.ToLower(strings.Trim(name, "[]"))
	_, err = netip.ParseAddr(name)
	return err == nil || slices.Contains(g.names, name)
}

// hostNames are those that the machine is known by.
func hostNames() []string {
	names := []string{"localhost"}
	if name, err := os.Hostname(); err == nil && name != "" {
		names = append(names, strings.ToLower(name))
	}
	return names
}

// sameOrigin refuses what another page sends: browsers say where a request comes from, always of a websocket and
// of what is posted.
func (g *guard) sameOrigin(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" {
		site := r.Header.Get("Sec-Fetch-Site")
		return r.Method == http.MethodGet && r.Header.Get("Upgrade") == "" &&
			(r.URL.Path == "/" || site == "" || site == "same-origin" || site == "none")
	}
	from, err := url.Parse(origin)
	return err == nil && from.Scheme == g.scheme && strings.EqualFold(from.Host, r.Host)
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

func (g *guard) isToken(token string) bool { return g.token != "" && same(token, g.token) }

func (g *guard) hasCookie(r *http.Request) bool {
	return slices.ContainsFunc(r.CookiesNamed(g.cookie), func(c *http.Cookie) bool { return same(c.Value, g.secret) })
}

func (g *guard) admit(w http.ResponseWriter) {
	http.SetCookie(w, &http.Cookie{
		Name: g.cookie, Value: g.secret, Path: "/", HttpOnly: true, Secure: g.scheme == "https", SameSite: http.SameSiteStrictMode,
	})
}

const (
	wrongPasswords = 5 // at once
	afterWrong     = 10 * time.Second
)

// login looks at a password.
func (g *guard) login(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 4096)
	right, locked := g.isPassword(r.PostFormValue("password"))
	switch {
	case right:
		g.admit(w)
		http.Redirect(w, r, "/", http.StatusSeeOther)
	case locked:
		w.Header().Set("Retry-After", strconv.Itoa(int(afterWrong.Seconds())))
		loginPage(w, r, http.StatusTooManyRequests)
	default:
		loginPage(w, r, http.StatusUnauthorized)
	}
}

// isPassword looks at a password, unless there were too many wrong ones.
func (g *guard) isPassword(password string) (right, locked bool) {
	given := sha256.Sum256([]byte(password))
	g.mu.Lock()
	defer g.mu.Unlock()
	locked = time.Now().Before(g.closed)
	right = !locked && subtle.ConstantTimeCompare(given[:], g.password[:]) == 1
	switch {
	case right:
		g.wrong = 0
	case !locked:
		if g.wrong++; g.wrong >= wrongPasswords {
			g.wrong, g.closed = 0, time.Now().Add(afterWrong)
		}
	}
	return right, locked
}

// scraped lets in a program that has no cookie, but the token or the password.
func (g *guard) scraped(w http.ResponseWriter, r *http.Request, next http.Handler) {
	secret, given := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	right := given && g.isToken(secret)
	if given && g.token == "" {
		right, _ = g.isPassword(secret)
	}
	if !right {
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, "open the address that ndbridge inspect has printed, or send its token, or the password of the page: Authorization: Bearer ...", http.StatusUnauthorized)
		return
	}
	next.ServeHTTP(w, r)
}

// ofLogin is what the page that asks for the password is made of, beside itself.
var ofLogin = []string{"style.css", "login.js"}

// loginPage asks for the password; what it is made of is served to everybody.
func loginPage(w http.ResponseWriter, r *http.Request, status int) {
	if file := strings.TrimPrefix(r.URL.Path, "/"); slices.Contains(ofLogin, file) {
		http.ServeFileFS(w, r, pages(), file)
		return
	}
	page, err := assets.ReadFile("web/login.html")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(page) // a browser that has gone needs none
}
