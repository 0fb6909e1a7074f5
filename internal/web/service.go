package web

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/web/page"
	"github.com/roost-batch/roost/internal/web/route"
)

// health answers that the daemon lives.
func (d *server) health(c *route.Call) error {
	return c.WriteText(http.StatusOK, "text/plain; charset=utf-8", []byte("ok\n"))
}

// readyTimeout is how long the schedd has to accept a connection.
const readyTimeout = 2 * time.Second

// ready answers whether the schedd accepts connections.
func (d *server) ready(c *route.Call) error {
	ctx, cancel := context.WithTimeout(c.Context(), readyTimeout)
	defer cancel()
	var dialer net.Dialer
	path, done, err := rpc.ShortPath(strings.TrimPrefix(d.node.LoginSocket(), "unix:"))
	if err != nil {
		return err
	}
	defer done()
	conn, err := dialer.DialContext(ctx, "unix", path)
	if err != nil {
		return fmt.Errorf("%w: the schedd does not answer", roost.Unavailable)
	}
	conn.Close()
	return d.health(c)
}

// static serves a script or style of the pages.
func (d *server) static(c *route.Call) error {
	text, kind, ok := page.Static(c.PathValue("file"))
	if !ok {
		return fmt.Errorf("static file: %w", roost.NotFound)
	}
	return c.WriteText(http.StatusOK, kind, text)
}

// describe serves the description of the API.
func (d *server) describe(c *route.Call) error {
	return c.WriteJSON(http.StatusOK, route.OpenAPI(d.table.Routes(), roost.Version))
}
