package stream

import (
	"fmt"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/web/route"
)

// heartbeat is the time between signs of life on a quiet stream. Each also finds out
// whether the login still holds.
const heartbeat = 15 * time.Second

// Serve answers with the events of some topics until the browser goes, or its session is
// over.
func (h *Hubs) Serve(c *route.Call) error {
	topics, err := topicsOf(c.QueryValue("topics"))
	if err != nil {
		return err
	}
	after := c.Request.Header.Get("Last-Event-ID")
	u, client := h.join(c.Session, topics, after)
	defer u.leave(client)
	if after == "" {
		u.initial(client)
	}
	begin := func() {
		c.Writer.Header().Set("Content-Type", "text/event-stream")
		c.Writer.Header().Set("X-Accel-Buffering", "no") // for a reverse proxy
	}
	return c.Stream(begin, func(write func([]byte) error) error {
		if err := write([]byte(": hello\n\n")); err != nil {
			return err
		}
		ticks := time.NewTicker(heartbeat)
		defer ticks.Stop()
		for {
			select {
			case <-client.signal:
				events, resync := client.take()
				if err := write(h.encode(events, resync)); err != nil {
					return err
				}
			case now := <-ticks.C:
				if err := c.Session.Verify(c.Context(), now); err != nil {
					return err
				}
				if err := write([]byte(": \n\n")); err != nil {
					return err
				}
			case <-c.Session.Ended():
				return nil
			case <-c.Context().Done():
				return nil
			}
		}
	})
}

// encode returns events as a browser reads them.
func (h *Hubs) encode(events []event, resync bool) []byte {
	var text []byte
	if resync {
		h.resyncs.Inc()
		text = append(text, "event: resync\ndata: {}\n\n"...)
	}
	for _, e := range events {
		text = fmt.Appendf(text, "id: %s.%d\n", h.epoch, e.seq)
		text = append(text, e.text...)
	}
	return text
}

// topicsOf reads the topics of a stream: "job/12.n2,job/13.n2".
func topicsOf(text string) ([]string, error) {
	var topics []string
	for topic := range strings.SplitSeq(text, ",") {
		id, ok := strings.CutPrefix(topic, jobTopic)
		if _, err := roost.ParseJobID(id, ""); !ok || err != nil || !strings.Contains(id, ".") {
			return nil, fmt.Errorf("topics: %w: %.60q is none: name jobs as job/12.n2", roost.Invalid, topic)
		}
		topics = append(topics, topic)
	}
	if len(topics) > maxTopics {
		return nil, fmt.Errorf("topics: %w: there are more than %d", roost.Exhausted, maxTopics)
	}
	return topics, nil
}
