package web

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roost-batch/roost/internal/config"
)

// TestCertificateWatch renews a certificate in place, and by files that take the place of
// others. The key comes a moment later.
func TestCertificateWatch(t *testing.T) {
	for name, write := range map[string]func(file, text string) error{
		"in place": func(file, text string) error { return os.WriteFile(file, []byte(text), 0o600) },
		"replaced": func(file, text string) error {
			return errors.Join(os.WriteFile(file+".new", []byte(text), 0o600), os.Rename(file+".new", file))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			w := &config.WebSettings{Certificate: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")}
			if err := errors.Join(write(w.Certificate, "one"), write(w.Key, "one")); err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) {
				watch := watchCertificate(w, slog.New(slog.DiscardHandler))
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				ended := make(chan error, 1)
				go func() { ended <- watch.Run(ctx) }()
				at := func(when time.Duration) {
					t.Helper()
					time.Sleep(when)
					synctest.Wait()
					if len(ended) > 0 {
						t.Fatalf("it has ended before: %v", <-ended)
					}
				}
				at(time.Hour + time.Second)
				if err := write(w.Certificate, "second"); err != nil {
					t.Fatal(err)
				}
				at(certificatePoll)
				if err := write(w.Key, "second"); err != nil {
					t.Fatal(err)
				}
				at(certificatePoll)
				if err := os.Remove(w.Key); err != nil {
					t.Fatal(err)
				}
				at(time.Hour)
				if err := write(w.Key, "third"); err != nil {
					t.Fatal(err)
				}
				at(certificatePoll)
				time.Sleep(certificatePoll)
				synctest.Wait()
				if len(ended) == 0 {
					t.Fatal("it has not ended")
				}
				if err := <-ended; !errors.Is(err, errCertificateChanged) {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}

// TestCertificateUnseen checks that a daemon that cannot see its files says so and serves
// on. Without TLS there is nothing to see.
func TestCertificateUnseen(t *testing.T) {
	var logged strings.Builder
	watch := watchCertificate(&config.WebSettings{Certificate: "/nonexistent/cert.pem", Key: "/nonexistent/key.pem"},
		slog.New(slog.NewTextHandler(&logged, nil)))
	if err := watch.Run(t.Context()); err != nil || !strings.Contains(logged.String(), "only after a restart") {
		t.Errorf("%v: %q", err, &logged)
	}
	if watch := watchCertificate(&config.WebSettings{}, nil); watch != nil || watch.Run(t.Context()) != nil {
		t.Errorf("a watch of nothing: %v", watch)
	}
}
