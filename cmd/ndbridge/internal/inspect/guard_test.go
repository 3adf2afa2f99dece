package inspect

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// guarded serves a secret behind a guard.
func guarded(t *testing.T, password string) (*guard, *httptest.Server) {
	t.Helper()
	secret := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("the arrays")) })
	server := httptest.NewUnstartedServer(nil)
	g := newGuard(server.Listener.Addr(), false, password, []string{"localhost", "box"})
	server.Config.Handler = g.protect(secret)
	server.Start()
	t.Cleanup(server.Close)
	return g, server
}

// answer gives the status of a request, and whether it got what is guarded.
func answer(t *testing.T, r *http.Request) (int, bool, *http.Response) {
	t.Helper()
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := resp.Write(&text); err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close() // it was read
	return resp.StatusCode, strings.Contains(text.String(), "the arrays"), resp
}

func get(t *testing.T, address string, change func(*http.Request)) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(r)
	}
	return r
}

// TestGuard lets in who has the token or its cookie, and nobody else.
func TestGuard(t *testing.T) {
	t.Parallel()
	g, server := guarded(t, "")
	status, in, resp := answer(t, get(t, server.URL+"/?token="+g.token, nil))
	if status != http.StatusOK || !in {
		t.Fatalf("with the token: %d", status)
	}
	cookies := resp.Cookies()
	if len(cookies) != 1 || !cookies[0].HttpOnly || cookies[0].SameSite != http.SameSiteStrictMode || strings.Contains(cookies[0].Value, g.token) {
		t.Fatalf("the cookie is %v", cookies)
	}
	for header, want := range map[string]string{
		"Content-Security-Policy": "default-src 'none'", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin", "Cache-Control": "no-store",
	} {
		if got := resp.Header.Get(header); !strings.HasPrefix(got, want) {
			t.Errorf("%s is %q", header, got)
		}
	}
	if csp := resp.Header.Get("Content-Security-Policy"); strings.Contains(csp, "unsafe") || !strings.Contains(csp, "require-trusted-types-for 'script'") {
		t.Errorf("the policy is %s", csp)
	}
	cookie := cookies[0]
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		path   string
		change func(*http.Request)
		status int
	}{
		"cookie":               {"/", func(r *http.Request) { r.AddCookie(cookie) }, http.StatusOK},
		"nothing":              {"/", nil, http.StatusUnauthorized},
		"wrong token":          {"/?token=" + strings.Repeat("A", len(g.token)), nil, http.StatusUnauthorized},
		"no token":             {"/?token=", nil, http.StatusUnauthorized},
		"token for a file":     {"/export/npy?name=x&token=" + g.token, nil, http.StatusUnauthorized},
		"wrong cookie":         {"/", func(r *http.Request) { r.AddCookie(&http.Cookie{Name: cookie.Name, Value: "x"}) }, http.StatusUnauthorized},
		"token as cookie":      {"/", func(r *http.Request) { r.AddCookie(&http.Cookie{Name: cookie.Name, Value: g.token}) }, http.StatusUnauthorized},
		"own name":             {"/", func(r *http.Request) { r.AddCookie(cookie); r.Host = "box:" + port }, http.StatusOK},
		"own name in capitals": {"/", func(r *http.Request) { r.AddCookie(cookie); r.Host = "LOCALHOST:" + port }, http.StatusOK},
		"address":              {"/", func(r *http.Request) { r.AddCookie(cookie); r.Host = "[::1]:" + port }, http.StatusOK},
		"rebound name":         {"/", func(r *http.Request) { r.AddCookie(cookie); r.Host = "attacker.example:" + port }, http.StatusMisdirectedRequest},
		"rebound with token":   {"/?token=" + g.token, func(r *http.Request) { r.Host = "attacker.example" }, http.StatusMisdirectedRequest},
		"own origin":           {"/socket", func(r *http.Request) { r.AddCookie(cookie); r.Header.Set("Origin", server.URL) }, http.StatusOK},
		"other origin": {"/socket", func(r *http.Request) {
			r.AddCookie(cookie)
			r.Header.Set("Origin", "http://127.0.0.1:1")
		}, http.StatusForbidden},
		"null origin":          {"/socket", func(r *http.Request) { r.AddCookie(cookie); r.Header.Set("Origin", "null") }, http.StatusForbidden},
		"other scheme":         {"/socket", func(r *http.Request) { r.AddCookie(cookie); r.Header.Set("Origin", "https://"+r.Host) }, http.StatusForbidden},
		"socket of no browser": {"/socket", func(r *http.Request) { r.AddCookie(cookie); r.Header.Set("Upgrade", "websocket") }, http.StatusForbidden},
		"picture elsewhere": {"/export/png", func(r *http.Request) {
			r.AddCookie(cookie)
			r.Header.Set("Sec-Fetch-Site", "cross-site")
		}, http.StatusForbidden},
		"link elsewhere": {"/", func(r *http.Request) { r.AddCookie(cookie); r.Header.Set("Sec-Fetch-Site", "cross-site") }, http.StatusOK},
		"metrics":        {"/metrics", func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+g.token) }, http.StatusOK},
		"file":           {"/export/npy", func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+g.token) }, http.StatusOK},
		"no bearer":      {"/stats.json", nil, http.StatusUnauthorized},
		"wrong bearer":   {"/metrics", func(r *http.Request) { r.Header.Set("Authorization", "Bearer x") }, http.StatusUnauthorized},
		"bearer's page":  {"/", func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+g.token) }, http.StatusUnauthorized},
		"posted":         {"/", func(r *http.Request) { r.AddCookie(cookie); r.Method = http.MethodPost }, http.StatusForbidden},
	} {
		status, in, _ := answer(t, get(t, server.URL+c.path, c.change))
		if status != c.status || in != (c.status == http.StatusOK) {
			t.Errorf("%s: %d, let in: %v; want %d", name, status, in, c.status)
		}
	}
}

// TestPassword asks for the password, and does not let anybody try many.
func TestPassword(t *testing.T) {
	t.Parallel()
	g, server := guarded(t, "open sesame")
	if g.token != "" {
		t.Fatal("there is a token, too")
	}
	login := func(password string) (int, []*http.Cookie) {
		form := url.Values{"password": {password}}.Encode()
		status, _, resp := answer(t, get(t, server.URL+"/login", func(r *http.Request) {
			r.Method, r.Body = http.MethodPost, http.NoBody
			r.URL.RawQuery = ""
			*r = *post(t, r.URL.String(), form)
			r.Header.Set("Origin", server.URL)
		}))
		return status, resp.Cookies()
	}
	if status, in, _ := answer(t, get(t, server.URL+"/", nil)); status != http.StatusUnauthorized || in {
		t.Errorf("without the password: %d", status)
	}
	if status, cookies := login("open sesame"); status != http.StatusSeeOther || len(cookies) != 1 {
		t.Fatalf("with the password: %d, %v", status, cookies)
	}
	scrape := func() int {
		status, _, _ := answer(t, get(t, server.URL+"/metrics", func(r *http.Request) { r.Header.Set("Authorization", "Bearer open sesame") }))
		return status
	}
	if status := scrape(); status != http.StatusOK {
		t.Errorf("metrics with the password: %d", status)
	}
	for range wrongPasswords {
		if status, cookies := login("sesame"); status != http.StatusUnauthorized || len(cookies) > 0 {
			t.Errorf("with a wrong password: %d, %v", status, cookies)
		}
	}
	if status, cookies := login("open sesame"); status != http.StatusTooManyRequests || len(cookies) > 0 {
		t.Errorf("after %d wrong ones: %d, %v", wrongPasswords, status, cookies)
	}
	if status := scrape(); status != http.StatusUnauthorized {
		t.Errorf("metrics after wrong ones: %d", status)
	}
	r := post(t, server.URL+"/login", url.Values{"password": {"open sesame"}}.Encode())
	r.Header.Set("Origin", "http://attacker.example")
	if status, _, _ := answer(t, r); status != http.StatusForbidden {
		t.Errorf("posted by another page: %d", status)
	}
}

func post(t *testing.T, address, form string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(form))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return r
}

// TestOutside needs TLS and a password elsewhere than on loopback.
func TestOutside(t *testing.T) {
	t.Parallel()
	for _, address := range []string{":0", "0.0.0.0:0", "[::]:0", "192.0.2.1:0", "box:0"} {
		if _, err := New(t.Context(), Options{Listen: address}); err == nil || !strings.Contains(err.Error(), "--password-file") {
			t.Errorf("%s: %v", address, err)
		}
	}
	if _, err := New(t.Context(), Options{Listen: "nowhere"}); err == nil || !strings.Contains(err.Error(), "127.0.0.1:8080") {
		t.Errorf("no port: %v", err)
	}
	for _, address := range []string{"127.0.0.1:0", "localhost:0", "127.1.2.3:0"} {
		s, err := New(t.Context(), Options{Listen: address})
		if err != nil {
			t.Fatal(err)
		}
		if a := s.Address(); !strings.HasPrefix(a, "http://") || !strings.Contains(a, "?token=") || s.Fingerprint() != "" {
			t.Errorf("%s: %s", address, a)
		}
		if err := s.listener.Close(); err != nil {
			t.Error(err)
		}
	}
	s, err := New(t.Context(), Options{Listen: "0.0.0.0:0", Password: "x"})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.listener.Close(); err != nil {
		t.Error(err)
	}
	if a := s.Address(); !strings.HasPrefix(a, "https://") || strings.Contains(a, "token") || len(s.Fingerprint()) != 32*3-1 {
		t.Errorf("outside: %s, %s", a, s.Fingerprint())
	}
}
