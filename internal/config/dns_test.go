package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDNS reads dns blocks: defaults, what is written again, and bad ones.
func TestDNS(t *testing.T) {
	load := func(dns string) (*Node, error) {
		file := filepath.Join(t.TempDir(), "node.hcl")
		text := "name = \"n1\"\npool = \"Physics Lab\"\ncollector {\n" + dns + "}\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return Load(file)
	}
	n, err := load("dns { listen = [\"127.0.0.1:5300\"] }\n")
	if err != nil {
		t.Fatal(err)
	}
	if d := n.Collector.DNS; d.Domain != "roost.internal" || d.Cell != "physics-lab" || d.Rate != 1000 {
		t.Errorf("defaults: %+v", d)
	}
	if n, err = load(""); err != nil || n.Collector.DNS != nil {
		t.Errorf("without the block: %+v, %v", n, err)
	}
	for dns, want := range map[string]string{
		"dns {}\n":                             "no address to listen on",
		"dns { listen = [\"unix:/tmp/s\"] }\n": "over UDP and TCP",
		"dns {\n listen = [\"127.0.0.1:53\"]\n cell = \"a b\"\n}\n":    "no label of DNS",
		"dns {\n listen = [\"127.0.0.1:53\"]\n domain = \"a..b\"\n}\n": "is no domain",
		"dns {\n listen = [\"127.0.0.1:53\"]\n port = 53\n}\n":         "port",
	} {
		if _, err := load(dns); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", dns, err, want)
		}
	}
}
