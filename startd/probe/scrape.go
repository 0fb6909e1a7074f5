package probe

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/roost-batch/roost"
)

// Bounds of what a task says of its metrics.
const (
	maxExposition   = 1 << 20 // bytes
	maxMetricSeries = 1000
	maxMetricLine   = 16 << 10 // bytes
)

// MetricReader reads one metric of a task. One goroutine uses it.
type MetricReader struct {
	Target netip.AddrPort // a port of the task
	Path   string
	Name   string

	client  http.Client
	counted float64 // of a counter: its sum the last time
	at      time.Time
}

// Read reads the metric. All its series are added up. Of a counter it returns the rate
// per second since the last read: an error the first time. It connects to the target and
// to nothing else, follows no redirect, and reads at most 1 MiB.
func (m *MetricReader) Read(ctx context.Context) (float64, error) {
	if m.client.Transport == nil {
		m.client = http.Client{CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		}, Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true, Proxy: nil,
			MaxResponseHeaderBytes: maxBody,
			DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, network, m.Target.String())
			}}}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+m.Target.String()+m.Path, nil)
	if err != nil {
		return 0, err
	}
	request.Header.Set("User-Agent", "roost-autoscale")
	request.Header.Set("Accept", "text/plain;version=0.0.4")
	answer, err := m.client.Do(request)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("GET %s: %w: %s", m.Path, roost.Unavailable, printable(answer.Status))
	}
	text, err := metricLines(io.LimitReader(answer.Body, maxExposition+1), m.Name)
	if err != nil {
		return 0, err
	}
	sum, isCounter, err := sumSeries(text, m.Name)
	if err != nil || !isCounter {
		return sum, err
	}
	return m.rate(sum, time.Now())
}

// rate returns how fast a counter rises.
func (m *MetricReader) rate(sum float64, now time.Time) (float64, error) {
	before, span := m.counted, now.Sub(m.at).Seconds()
	first := m.at.IsZero()
	m.counted, m.at = sum, now
	switch {
	case first:
		return 0, fmt.Errorf("%s: %w: a counter has a rate from the second time on", m.Name, roost.Unavailable)
	case sum < before || span <= 0:
		return 0, fmt.Errorf("%s: %w: the counter began anew", m.Name, roost.Unavailable)
	}
	return (sum - before) / span, nil
}

// metricLines returns the lines of an exposition that are about one metric. What else is
// in it costs no memory.
func metricLines(from io.Reader, name string) ([]byte, error) {
	var out bytes.Buffer
	counted := &countingReader{from: from}
	lines := bufio.NewScanner(counted)
	lines.Buffer(make([]byte, 4096), maxMetricLine)
	series := 0
	for lines.Scan() {
		line := bytes.TrimSpace(lines.Bytes())
		rest, isSeries := bytes.CutPrefix(line, []byte(name))
		isSeries = isSeries && len(rest) > 0 && bytes.IndexByte([]byte("{ \t"), rest[0]) >= 0
		words := bytes.Fields(line[:min(len(line), 2*len(name)+64)])
		isType := len(words) == 4 && string(words[0]) == "#" && string(words[1]) == "TYPE" && string(words[2]) == name
		if !isSeries && !isType {
			continue
		}
		if isSeries {
			if series++; series > maxMetricSeries {
				return nil, fmt.Errorf("%s: %w: more than %d series", name, roost.Exhausted, maxMetricSeries)
			}
		}
		out.Write(line)
		out.WriteByte('\n')
	}
	switch err := lines.Err(); {
	case err != nil:
		return nil, fmt.Errorf("%s: %w: %w", name, roost.Invalid, err)
	case counted.n > maxExposition:
		return nil, fmt.Errorf("%s: %w: the answer is longer than 1 MiB", name, roost.Exhausted)
	case series == 0:
		return nil, fmt.Errorf("%w: there is no metric %s", roost.NotFound, name)
	}
	return out.Bytes(), nil
}

// countingReader counts the bytes that were read.
type countingReader struct {
	from io.Reader
	n    int
}

// Read implements io.Reader.
func (c *countingReader) Read(b []byte) (n int, err error) {
	n, err = c.from.Read(b)
	c.n += n
	return n, err
}

// Types of metrics, as the library names them.
const (
	counterType = "COUNTER"
	untyped     = "UNTYPED"
)

// sumSeries adds up the series of a metric. A counter is one by its type, or by its name
// where that is not said.
func sumSeries(text []byte, name string) (sum float64, isCounter bool, err error) {
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return 0, false, fmt.Errorf("%s: %w: %s", name, roost.Invalid, printable(err.Error()))
	}
	f := families[name]
	if f == nil {
		return 0, false, fmt.Errorf("%s: %w: it is a part of a histogram or a summary", name, roost.Invalid)
	}
	for _, one := range f.GetMetric() {
		switch f.GetType().String() {
		case counterType:
			sum += one.GetCounter().GetValue()
		case "GAUGE":
			sum += one.GetGauge().GetValue()
		case untyped:
			sum += one.GetUntyped().GetValue()
		default:
			return 0, false, fmt.Errorf("%s: %w: a histogram or a summary has no value: write %s_count", name,
				roost.Invalid, name)
		}
	}
	if math.IsNaN(sum) || math.IsInf(sum, 0) || sum < 0 {
		return 0, false, fmt.Errorf("%s: %w: its value is %g", name, roost.Invalid, sum)
	}
	isCounter = f.GetType().String() == counterType || f.GetType().String() == untyped &&
		slices.ContainsFunc([]string{"_total", "_count", "_sum"}, func(end string) bool {
			return strings.HasSuffix(name, end)
		})
	return sum, isCounter, nil
}
