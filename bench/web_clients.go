package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/roost-batch/roost/bench/gauge"
)

// webClient is a browser that is logged in.
type webClient struct {
	http http.Client
	url  string
}

// webAnswer is an answer to a browser.
type webAnswer struct {
	text []byte        // of the document
	sent int           // bytes of the body as it came
	took time.Duration // until its last byte was here
}

// openWebClients logs browsers in, as several users if this program is root's: the
// requests of each user are bounded.
func (b webBencher) openWebClients() (clients []*webClient, err error) {
	users := []uint32{uint32(os.Geteuid())}
	if users[0] == 0 {
		users = append(users, otherUID, 2, 3, 4) // of every Debian
		if err := openPoolToUsers(b.poolBencher); err != nil {
			return nil, err
		}
	}
	for _, uid := range users {
		c, err := b.openWebClient(uid)
		if err != nil {
			return nil, err
		}
		clients = append(clients, c)
	}
	return clients, nil
}

// openWebClient logs one browser in, with a link of roost web login.
func (b webBencher) openWebClient(uid uint32) (*webClient, error) {
	cmd := b.command("web", "login")
	cmd.Dir, cmd.Env = "/", append(cmd.Env, "HOME=/")
	if uid != uint32(os.Geteuid()) {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	url, token, ok := strings.Cut(strings.TrimSpace(string(out)), "/login#")
	if err != nil || !ok {
		return nil, fmt.Errorf("roost web login as %d: %w\n%s%s", uid, err, out, errs.String())
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	c := &webClient{http.Client{Jar: jar, Transport: &http.Transport{MaxIdleConnsPerHost: webReaders,
		DisableCompression: true}}, url}
	body, err := json.Marshal(map[string]string{"token": token})
	if err != nil {
		return nil, err
	}
	answer, err := c.http.Post(url+"/v1/session", "application/json", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusCreated {
		text, _ := io.ReadAll(answer.Body)
		return nil, fmt.Errorf("login as %d: %s\n%s", uid, answer.Status, text)
	}
	return c, nil
}

// webRetry is when a client asks again that was refused for asking too often.
const webRetry = 100 * time.Millisecond

// get reads one document.
func (c *webClient) get(ctx context.Context, path string) (a webAnswer, err error) {
	for {
		began := time.Now()
		status, text, packed, err := c.request(ctx, path)
		a = webAnswer{text: text, sent: len(text), took: time.Since(began)}
		switch {
		case err != nil:
			return a, fmt.Errorf("%s: %w", path, err)
		case status == http.StatusTooManyRequests:
			if err := sleepContext(ctx, webRetry); err != nil {
				return a, err
			}
			continue
		case status != http.StatusOK:
			return a, fmt.Errorf("%s: status %d: %.300s", path, status, text)
		case packed:
			z, err := gzip.NewReader(bytes.NewReader(text))
			if err == nil {
				a.text, err = io.ReadAll(z)
			}
			return a, err
		}
		return a, nil
	}
}

func (c *webClient) request(ctx context.Context, path string) (status int, text []byte, packed bool, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+path, nil)
	if err != nil {
		return 0, nil, false, err
	}
	r.Header.Set("Accept-Encoding", "gzip")
	answer, err := c.http.Do(r)
	if err != nil {
		return 0, nil, false, err
	}
	defer answer.Body.Close()
	text, err = io.ReadAll(answer.Body)
	return answer.StatusCode, text, answer.Header.Get("Content-Encoding") == "gzip", err
}

// webReaderGroup is browsers that look at one page after the other.
type webReaderGroup struct {
	cancel context.CancelFunc
	all    sync.WaitGroup
	mu     sync.Mutex
	took   gauge.DurationSamples
	failed error
}

// startWebReaders starts some readers, each of which begins a read after an interval.
func startWebReaders(ctx context.Context, clients []*webClient, paths []string, readers int,
	interval time.Duration) *webReaderGroup {
	ctx, cancel := context.WithCancel(ctx)
	g := &webReaderGroup{cancel: cancel}
	for i := range readers {
		g.all.Go(func() {
			err := sleepContext(ctx, interval*time.Duration(i)/time.Duration(readers))
			for n := i * len(paths) / readers; err == nil; n++ {
				var a webAnswer
				if a, err = clients[i%len(clients)].get(ctx, paths[n%len(paths)]); err == nil {
					g.add(a.took)
					err = sleepContext(ctx, interval-a.took)
				}
			}
			if ctx.Err() == nil {
				g.fail(err)
			}
		})
	}
	return g
}

func (g *webReaderGroup) add(took time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.took = append(g.took, took)
}

func (g *webReaderGroup) fail(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.failed = errors.Join(g.failed, err)
}

// stop stops the readers and returns how long their pages took.
func (g *webReaderGroup) stop() (gauge.DurationSamples, error) {
	g.cancel()
	g.all.Wait()
	return g.took, g.failed
}

// openPoolToUsers lets other users reach the pool's schedd.
func openPoolToUsers(b *poolBencher) error {
	for _, dir := range []string{filepath.Dir(b.dir), b.dir, filepath.Join(b.dir, "run"), b.pool.Dir} {
		if err := os.Chmod(dir, 0o711); err != nil {
			return err
		}
	}
	return os.Chmod(filepath.Join(b.pool.Dir, "run", "schedd.sock"), 0o666)
}
