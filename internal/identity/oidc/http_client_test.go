package oidc

import (
	"errors"
	"net/http"
	"testing"
)

// TestRefuseLocal holds which addresses the client connects to. A host from which those
// of the link lead nowhere would show no difference.
func TestRefuseLocal(t *testing.T) {
	for address, refused := range map[string]bool{
		"127.0.0.1:443": true, "127.8.9.1:443": true, "[::1]:443": true, "[::ffff:127.0.0.1]:443": true,
		"0.0.0.0:443": true, "[::]:443": true, "169.254.169.254:80": true, "[::ffff:169.254.169.254]:80": true,
		"[fe80::1%lo]:443": true, "[fe80::1]:443": true, "224.0.0.1:443": true, "[ff02::1]:443": true,
		"192.0.2.7:443": false, "[2001:db8::1]:443": false, "name.example:443": true, "": true,
	} {
		if err := refuseLocal("tcp", address, nil); (err != nil) != refused {
			t.Errorf("%q: %v, want refused %t", address, err, refused)
		}
	}
}

// sentRequests counts the requests that reach the network.
type sentRequests int

func (n *sentRequests) RoundTrip(*http.Request) (*http.Response, error) {
	*n++
	return nil, errors.New("there is no network")
}

// TestRefusePlain holds that what is not TLS is never sent, unless the provider is said
// to be on this host.
func TestRefusePlain(t *testing.T) {
	for _, c := range []struct {
		url   string
		local bool
		sent  sentRequests
	}{{"http://192.0.2.1/", false, 0}, {"ftp://192.0.2.1/", false, 0}, {"https://192.0.2.1/", false, 1},
		{"http://127.0.0.1/", true, 1}} {
		var sent sentRequests
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.url, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := (&strictTransport{next: &sent, local: c.local}).RoundTrip(r)
		if err == nil {
			answer.Body.Close()
		}
		if err == nil || sent != c.sent {
			t.Errorf("%s, local %t: %v, %d requests were sent", c.url, c.local, err, sent)
		}
	}
}
