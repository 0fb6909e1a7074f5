package config

import (
	"fmt"
	"net"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/roost-batch/roost"
)

// DefaultDomain is the domain below which the names of services are. The top-level domain
// internal is reserved for private use.
const DefaultDomain = "roost.internal"

// defaultDNSRate is the number of queries of one source that are answered in a second.
const defaultDNSRate = 1000

// DNSSettings configures the DNS server in the collector.
type DNSSettings struct {
	Listen []string // "host:port", for UDP and TCP
	Domain string   // domain of the pool; DefaultDomain by default
	Cell   string   // label of the pool below Domain; from the pool's name by default
	Rate   int      // queries of one source that are answered in a second; 1000 by default
}

func (s *blockReader) readCollector(b *hclsyntax.Block, to *CollectorSettings) {
	c := s.innerBlock(b)
	c.readAddresses("listen", &to.Listen)
	if b := c.singleBlock("dns"); b != nil {
		to.DNS = &DNSSettings{}
		c.readDNS(b, to.DNS)
	}
	c.reportUnknown()
}

func (c *CollectorSettings) fillDefaults(n *Node) {
	fillListenAddress(&c.Listen, n.RunDir(), "collector")
	n.Collectors = advertisedOrDefault(n.Collectors, c.Listen)
	c.DNS.fillDefaults(n.Pool)
}

// readDNS reads the block dns of a collector.
func (s *blockReader) readDNS(b *hclsyntax.Block, to *DNSSettings) {
	d := s.innerBlock(b)
	d.readAddresses("listen", &to.Listen)
	d.readSetting("domain", `"roost.internal"`, func(text string) error {
		to.Domain = strings.ToLower(strings.Trim(text, "."))
		return checkDomain(to.Domain)
	})
	d.readSetting("cell", `"physics"`, func(text string) error {
		if to.Cell = strings.ToLower(text); CellLabel(to.Cell) != to.Cell {
			return fmt.Errorf("%q is no label of DNS: up to 63 letters, digits and inner hyphens", text)
		}
		return nil
	})
	d.readCount("rate", &to.Rate)
	d.reportUnknown()
	if len(to.Listen) == 0 {
		s.addProblem(b.TypeRange, `write it as listen = ["10.0.0.1:53"]`, "dns has no address to listen on")
	}
	for _, address := range to.Listen {
		if _, _, err := net.SplitHostPort(address); err != nil || strings.HasPrefix(address, "unix:") {
			s.addProblem(b.TypeRange, `write it as listen = ["10.0.0.1:53"]`,
				"dns cannot listen at %q: clients reach it over UDP and TCP", address)
		}
	}
}

func checkDomain(domain string) error {
	for _, label := range strings.Split(domain, ".") {
		if CellLabel(label) != label {
			return fmt.Errorf("%q is no domain: its labels have up to 63 letters, digits and inner hyphens", domain)
		}
	}
	if len(domain) > 100 {
		return fmt.Errorf("%q has %d bytes, and names below it would be too long", domain, len(domain))
	}
	return nil
}

func (d *DNSSettings) fillDefaults(pool string) {
	if d == nil {
		return
	}
	setDefault(&d.Domain, DefaultDomain)
	setDefault(&d.Cell, CellLabel(pool))
	if d.Rate == 0 {
		d.Rate = defaultDNSRate
	}
}

// CellLabel returns the label of DNS that is nearest to the name of a pool.
func CellLabel(pool string) string {
	label := roost.NearestDNSLabel(pool)
	if label == "" {
		return "cell"
	}
	return label
}

func (w fileWriter) writeCollector(c *CollectorSettings) {
	if c == nil {
		return
	}
	b := w.writeBlock("collector")
	b.writeList("listen", c.Listen)
	if d := c.DNS; d != nil {
		inner := b.writeBlock("dns")
		inner.writeList("listen", d.Listen)
		inner.writeText("domain", d.Domain)
		inner.writeText("cell", d.Cell)
		if d.Rate != 0 {
			inner.writeNumber("rate", d.Rate)
		}
	}
}
