package doctor

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// listenTLS serves a certificate that is valid between two times.
func listenTLS(t *testing.T, from, until time.Time) (address string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	form := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: from, NotAfter: until}
	der, err := x509.CreateCertificate(rand.Reader, form, form, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{NextProtos: []string{"h2"},
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}})
	if err != nil {
		t.Fatal(err)
	}
	return serveHandshakes(t, l)
}

// serveHandshakes accepts connections until the test ends.
func serveHandshakes(t *testing.T, l net.Listener) (address string) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			if c, ok := conn.(*tls.Conn); ok {
				c.Handshake()
			}
			conn.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return l.Addr().String()
}

// TestPilotConnection checks what is said of the way from an allocation to the pool.
func TestPilotConnection(t *testing.T) {
	now := time.Now()
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	for name, tt := range map[string]struct {
		address, proxy string
		want           []string // level, check and a part of the text and of the cure
	}{
		"it answers": {listenTLS(t, now.Add(-time.Hour), now.Add(time.Hour)), "",
			[]string{"ok connection answers", "ok clock goes with"}},
		"a clock behind": {listenTLS(t, now.Add(time.Hour), now.Add(2*time.Hour)), "",
			[]string{"ok connection", "fail clock valid from"}},
		"a clock ahead": {listenTLS(t, now.Add(-2*time.Hour), now.Add(-time.Hour)), "",
			[]string{"ok connection", "fail clock valid from"}},
		"something else":  {serveHandshakes(t, plain), "", []string{"fail connection not as a daemon of Roost"}},
		"nothing":         {closed.Addr().String(), "", []string{"fail connection refused"}},
		"behind a proxy":  {closed.Addr().String(), "http://proxy:3128", []string{"fail connection without a proxy"}},
		"no such address": {"nowhere", "", []string{"fail connection missing port"}},
	} {
		got := examineOutbound(t.Context(), tt.address, now, func(string) string { return tt.proxy })
		if len(got) != len(tt.want) {
			t.Errorf("%s: %+v", name, got)
			continue
		}
		for i, f := range got {
			words := strings.SplitN(tt.want[i], " ", 3)
			if string(f.Level) != words[0] || f.Check != words[1] ||
				len(words) > 2 && !strings.Contains(f.Text+f.Hint, words[2]) || f.Level != levelOK && f.Hint == "" {
				t.Errorf("%s: %+v, want %s", name, f, tt.want[i])
			}
		}
	}
}

// TestPilotScratch checks what is said of directories below which a pilot is to work.
func TestPilotScratch(t *testing.T) {
	dir := t.TempDir()
	long := filepath.Join(dir, strings.Repeat("x", maxScratchName))
	if err := os.Mkdir(long, 0o700); err != nil {
		t.Fatal(err)
	}
	if got := examineScratch(filepath.Join(dir, "nothing")); len(got) != 1 || got[0].Level != levelError ||
		got[0].Hint == "" {
		t.Errorf("a directory that is not there: %+v", got)
	}
	if got := examineScratch(long); len(got) != 2 || got[1].Level != levelWarning {
		t.Errorf("a long name: %+v", got)
	}
	if left, err := os.ReadDir(long); err != nil || len(left) > 0 {
		t.Errorf("it leaves %v, %v", left, err)
	}
}
