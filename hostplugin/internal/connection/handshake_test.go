package connection

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/hashicorp/go-plugin"
)

// good is a line of a plugin that has a host's certificate, to be short.
func good(t *testing.T, h *handshake) string {
	t.Helper()
	return "1|1|unix|/tmp/plugin1|grpc|" + base64.RawStdEncoding.EncodeToString(h.certificate.Certificate[0])
}

func TestLines(t *testing.T) {
	t.Parallel()
	h, err := newHandshake()
	if err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		good(t, h):                   "",
		good(t, h) + "|false":        "", // go-plugin appends what it learns to do
		"":                           "no line",
		"1|1|unix":                   "no line",
		"one|1|unix|a|grpc|":         "no line",
		"1|one|unix|a|grpc|":         "no line",
		"1|99|unix|a|grpc|":          "another version",
		"2|1|unix|a|grpc|":           "another version",
		"1|1|tcp|127.0.0.1:22|grpc|": `the plugin listens at tcp "127.0.0.1:22", expected a unix socket`,
		"1|1|unix|/tmp/a":            `the plugin speaks "", expected grpc`,
		"1|1|unix|/tmp/a|netrpc|":    `the plugin speaks "netrpc", expected grpc`,
		"1|1|unix|/tmp/a|grpc":       "the plugin's certificate: ",
		"1|1|unix|/tmp/a|grpc|*":     "the plugin's certificate: ",
		"1|1|unix|/tmp/a|grpc|aaaa":  "the plugin's certificate: ",
	} {
		l, ok := parseGreeting(line)
		got := ""
		switch {
		case !ok:
			got = "no line"
		case !l.current():
			got = "another version"
		default:
			address, config, err := h.accept(l)
			if err != nil {
				got = err.Error()
			} else if address.String() != "/tmp/plugin1" || config.RootCAs == nil || len(config.Certificates) != 1 {
				t.Errorf("%q: %v, %v", line, address, config)
			}
		}
		if got != want && (want == "" || !strings.HasPrefix(got, want)) {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	h, err := newHandshake()
	if err != nil {
		t.Fatal(err)
	}
	env := strings.Join(h.environment("/a/b"), "\n")
	for _, want := range []string{plugin.EnvUnixSocketDir + "=/a/b", "NDBRIDGE_PLUGIN=", "PLUGIN_PROTOCOL_VERSIONS=1", "PLUGIN_CLIENT_CERT=-----BEGIN CERTIFICATE-----"} {
		if !strings.Contains(env, want) {
			t.Errorf("%q is not in\n%s", want, env)
		}
	}
	if other, err := newHandshake(); err != nil || strings.Join(other.environment("/a/b"), "\n") == env {
		t.Errorf("two hosts have the same certificate, %v", err)
	}
}
