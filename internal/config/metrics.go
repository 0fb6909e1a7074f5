package config

import (
	"fmt"
	"net"
	"slices"
	"strconv"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/roost-batch/roost"
)

// MetricsSettings says where the daemons of a node serve their metrics, and to whom. A
// daemon without an address serves none.
type MetricsSettings struct {
	Collector  string // host:port
	Negotiator string
	Schedd     string
	Startd     string // of the first startd; each further one has the next port
	Web        string
	Accountant string

	CheckpointServer string
	TokenFile        string // absolute path; empty: certificates only
	// names of this host that readers may use, beside the node's name and the host in the
	// address
	Names []string
	Users bool // the schedd also serves metrics by user
}

// MetricsAddress returns where a daemon serves its metrics, "" if it does not. name is
// that of the execute node, for a startd.
func (n *Node) MetricsAddress(daemon, name string) string {
	m := n.Metrics
	if m == nil {
		return ""
	}
	switch daemon {
	case "collector":
		return m.Collector
	case "negotiator":
		return m.Negotiator
	case "schedd":
		return m.Schedd
	case "web":
		return m.Web
	case "accountant":
		return m.Accountant
	case "checkpoint_server":
		return m.CheckpointServer
	case "startd":
		return addressAfter(m.Startd, slices.IndexFunc(n.Startds, func(d StartdSettings) bool {
			return d.Name == name
		}))
	}
	return ""
}

// addressAfter returns the address whose port is so much higher; "" beyond the last port.
func addressAfter(address string, by int) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return ""
	}
	p, err := strconv.Atoi(port)
	if p += by; err != nil || by < 0 || p > 65535 {
		return ""
	}
	return net.JoinHostPort(host, strconv.Itoa(p))
}

func (s *blockReader) readMetrics(b *hclsyntax.Block, to *MetricsSettings) {
	m := s.innerBlock(b)
	for _, d := range []struct {
		name string
		to   *string
	}{{"collector", &to.Collector}, {"negotiator", &to.Negotiator}, {"schedd", &to.Schedd}, {"startd", &to.Startd},
		{"web", &to.Web}, {"accountant", &to.Accountant}, {"checkpoint_server", &to.CheckpointServer}} {
		m.readSetting(d.name, `"127.0.0.1:9713"`, func(text string) error {
			*d.to = text
			return checkMetricsAddress(text)
		})
	}
	m.readText("token_file", &to.TokenFile)
	const example = `"node7.example.org"`
	m.readList("names", example, &to.Names, func(text string, at hcl.Range) {
		if net.ParseIP(text) == nil && !isHostName(text) {
			s.addProblem(at, fmt.Sprintf("write it as names = [%s]", example), "names: %q is not the name of a host",
				text)
		}
	})
	m.readBool("users", &to.Users)
	m.reportUnknown()
	if len(to.addresses()) == 0 {
		s.addProblem(b.TypeRange, `add for example schedd = "127.0.0.1:9713"`,
			"metrics names no daemon whose metrics are to be served")
	}
}

// isHostName reports whether a text can be the name of a host, without a port.
func isHostName(text string) bool {
	for _, r := range text {
		if !isLetter(r) && !isDigit(r) && r != '-' && r != '_' && r != '.' {
			return false
		}
	}
	return text != "" && len(text) <= 253
}

// checkMetricsAddress returns why an address cannot be one of metrics. Prometheus knows
// no unix sockets, and the Host of its requests has to name this host.
func checkMetricsAddress(text string) error {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return fmt.Errorf("%q is not a host and a port", text)
	}
	if p, err := strconv.ParseUint(port, 10, 16); err != nil || p == 0 {
		return fmt.Errorf("%q is not a port from 1 to 65535", port)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		return fmt.Errorf("%q names no host: name the address that Prometheus uses", text)
	}
	return nil
}

// addresses lists the addresses in the block.
func (m *MetricsSettings) addresses() (all []string) {
	for _, address := range []string{m.Collector, m.Negotiator, m.Schedd, m.Startd, m.Web, m.Accountant,
		m.CheckpointServer} {
		if address != "" {
			all = append(all, address)
		}
	}
	return all
}

// fillDefaults makes the path of the token file absolute. at is the directory of the node
// file.
func (m *MetricsSettings) fillDefaults(at string) {
	if m != nil && m.TokenFile != "" {
		m.TokenFile = joinBelow(at, m.TokenFile)
	}
}

// checkMetrics checks that nobody reads metrics without having shown who they are. Each
// daemon must have an address of its own.
func (n *Node) checkMetrics() error {
	m := n.Metrics
	if m == nil {
		return nil
	}
	if n.TLS == nil && m.TokenFile == "" {
		return fmt.Errorf("%w: metrics are served to nobody: add token_file = \"…\" with a token for the readers "+
			"(openssl rand -hex 32), or a tls block for readers with a certificate of the pool", roost.BadConfig)
	}
	if m.Users && m.Schedd == "" {
		return fmt.Errorf("%w: metrics have users = true, and no address of the schedd, which has them: add "+
			"schedd = \"127.0.0.1:9713\"", roost.BadConfig)
	}
	if err := n.checkWebMetrics(); err != nil {
		return err
	}
	all := []string{m.Collector, m.Negotiator, m.Schedd, m.Web, m.Accountant, m.CheckpointServer}
	for i, d := range n.Startds {
		address := addressAfter(m.Startd, i)
		if m.Startd != "" && address == "" {
			return fmt.Errorf("%w: metrics of startd %s: there is no port %d after that of %s", roost.BadConfig, d.Name,
				i, m.Startd)
		}
		all = append(all, address)
	}
	for i, address := range all {
		if address == "" {
			continue
		}
		if slices.Contains(all[:i], address) {
			return fmt.Errorf("%w: metrics: two daemons have the address %s (each further startd has the next port)",
				roost.BadConfig, address)
		}
		if n.TLS == nil && !isLoopback(address) {
			return fmt.Errorf("%w: metrics at %s are read over the network, and there is no tls block: a token would "+
				"be readable on its way", roost.BadConfig, address)
		}
	}
	return nil
}

// checkWebMetrics checks the address of the web daemon. The daemon has no key of the
// pool, so that its readers need tokens, and no TLS but that of its pages.
func (n *Node) checkWebMetrics() error {
	m := n.Metrics
	switch {
	case m.Web == "":
		return nil
	case m.TokenFile == "":
		return fmt.Errorf("%w: metrics of the web daemon are served to nobody, because it knows no certificates: add "+
			"token_file = \"…\" with a token for the readers", roost.BadConfig)
	case !isLoopback(m.Web) && (n.Web == nil || n.Web.Certificate == ""):
		return fmt.Errorf("%w: metrics of the web daemon at %s are read over the network, and the web block has no "+
			"certificate: a token would be readable on its way", roost.BadConfig, m.Web)
	}
	return nil
}

func (w fileWriter) writeMetrics(m *MetricsSettings) {
	if m == nil {
		return
	}
	b := w.writeBlock("metrics")
	b.writeText("collector", m.Collector)
	b.writeText("negotiator", m.Negotiator)
	b.writeText("schedd", m.Schedd)
	b.writeText("startd", m.Startd)
	b.writeText("web", m.Web)
	b.writeText("accountant", m.Accountant)
	b.writeText("checkpoint_server", m.CheckpointServer)
	b.writeText("token_file", m.TokenFile)
	b.writeList("names", m.Names)
	b.writeBool("users", m.Users)
}
