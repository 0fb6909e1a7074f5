package probe

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/boottime"
)

// readMetric reads the metric "m" from a server that answers each connection by f.
func readMetric(t *testing.T, timeout time.Duration, f func(net.Conn)) (float64, error) {
	t.Helper()
	r := &MetricReader{Target: listenRaw(t, f)["http"], Path: "/metrics", Name: "m"}
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	return r.Read(ctx)
}

// serveText answers with a body and closes the connection.
func serveText(body string) func(net.Conn) {
	return func(c net.Conn) {
		c.Read(make([]byte, 4096))
		io.WriteString(c, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"+body)
	}
}

// TestReadMetric checks what is made of what a task says of its metric, whatever that is.
func TestReadMetric(t *testing.T) {
	for _, tt := range []struct {
		name, body string
		want       float64
		err        string
	}{
		{"gauge", "# HELP m x\n# TYPE m gauge\nm 7.5\n", 7.5, ""},
		{"series are added up", "m{a=\"1\"} 1\nm{a=\"2\",b=\"} 9\"} 2\nmm 100\nm_x 100\n", 3, ""},
		{"with a time", "m 4 1700000000000\n", 4, ""},
		{"others are not looked at", "broken {{{\nm 4\nother NaN\n", 4, ""},
		{"none", "other 4\n", 0, "there is no metric m"},
		{"empty", "", 0, "there is no metric m"},
		{"NaN", "m NaN\n", 0, "its value is NaN"},
		{"infinite", "m +Inf\n", 0, "its value is +Inf"},
		{"opposite infinities", "m{a=\"1\"} +Inf\nm{a=\"2\"} -Inf\n", 0, "its value is NaN"},
		{"negative", "m -1\n", 0, "its value is -1"},
		{"too large a sum", "m{a=\"1\"} 1e308\nm{a=\"2\"} 1e308\n", 0, "its value is +Inf"},
		{"no number", "m seven\n", 0, "m: invalid"},
		{"not closed", "m{a=\"1 4\n", 0, "m: invalid"},
		{"not UTF-8", "m{a=\"\xff\"} 4\n", 0, "m: invalid"},
		{"histogram", "# TYPE m histogram\nm_bucket{le=\"1\"} 1\nm_sum 1\nm_count 1\n", 0, "there is no metric m"},
		{"a long line", "m{a=\"" + strings.Repeat("x", 20<<10) + "\"} 1\n", 0, "token too long"},
		{"many series", strings.Repeat("m{a=\"1\"} 1\n", maxMetricSeries+1), 0, "more than 1000 series"},
		{"a large answer", "m 1\n" + strings.Repeat("other 1\n", maxExposition/8), 0, "longer than 1 MiB"},
	} {
		got, err := readMetric(t, time.Minute, serveText(tt.body))
		if got != tt.want || fmt.Sprint(err) != "<nil>" && tt.err == "" ||
			tt.err != "" && !strings.Contains(fmt.Sprint(err), tt.err) {
			t.Errorf("%s: %g, %v; want %g, %s", tt.name, got, err, tt.want, tt.err)
		}
	}
}

// TestReadMetricBounds checks that a task can not hold up a read, and not send it
// elsewhere. It cannot fill the memory of its machine either.
func TestReadMetricBounds(t *testing.T) {
	began := boottime.Now()
	if _, err := readMetric(t, 50*time.Millisecond, func(c net.Conn) { io.Copy(io.Discard, c) }); err == nil {
		t.Error("no answer is a value")
	}
	sent := make(chan int, 1)
	_, err := readMetric(t, time.Minute, func(c net.Conn) { // without an end
		c.Read(make([]byte, 4096))
		io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
		n, total := 0, 0
		for err := error(nil); err == nil && total < 64<<20; total += n {
			n, err = io.WriteString(c, strings.Repeat("other 1\n", 1024))
		}
		sent <- total
	})
	if err == nil || !strings.Contains(err.Error(), "longer than 1 MiB") {
		t.Errorf("an endless answer: %v", err)
	}
	if n := <-sent; n >= 64<<20 {
		t.Errorf("%d bytes were read", n)
	}
	elsewhere := make(chan string, 1)
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		elsewhere <- r.URL.Path
	}))
	defer other.Close()
	_, err = readMetric(t, time.Minute, func(c net.Conn) {
		c.Read(make([]byte, 4096))
		io.WriteString(c, "HTTP/1.1 302 Found\r\nLocation: "+other.URL+"/secret\r\nConnection: close\r\n\r\n")
	})
	if err == nil || !strings.Contains(err.Error(), "302 Found") || len(elsewhere) > 0 {
		t.Errorf("a redirect: %v, and %d requests elsewhere", err, len(elsewhere))
	}
	_, err = readMetric(t, time.Minute, func(c net.Conn) {
		c.Read(make([]byte, 4096))
		for err := error(nil); err == nil; {
			_, err = io.WriteString(c, "X-Header: "+strings.Repeat("x", 4096)+"\r\n")
		}
	})
	if err == nil {
		t.Error("endless headers are a value")
	}
	if took := boottime.Now() - began; took > 30*time.Second {
		t.Errorf("it took %v", took)
	}
}

// TestCounterRate checks that a counter counts as its rate, from the second read on.
func TestCounterRate(t *testing.T) {
	r, start := &MetricReader{Name: "requests_total"}, time.Unix(1000, 0)
	if _, err := r.rate(100, start); err == nil {
		t.Error("the first read has a rate")
	}
	if got, err := r.rate(250, start.Add(10*time.Second)); got != 15 || err != nil {
		t.Errorf("got %g, %v, want 15", got, err)
	}
	if got, err := r.rate(5, start.Add(20*time.Second)); err == nil {
		t.Errorf("a counter that began anew has the rate %g", got)
	}
	if got, err := r.rate(15, start.Add(30*time.Second)); got != 1 || err != nil {
		t.Errorf("got %g, %v, want 1", got, err)
	}
	for text, want := range map[string]bool{
		"# TYPE m counter\nm 1\n": true, "m 1\n": false, "# TYPE m gauge\nm 1\n": false,
	} {
		if _, is, err := sumSeries([]byte(text), "m"); is != want || err != nil {
			t.Errorf("%q is a counter: %v, %v", text, is, err)
		}
	}
	if _, is, err := sumSeries([]byte("m_total 1\n"), "m_total"); !is || err != nil {
		t.Errorf("m_total is no counter: %v", err)
	}
}
