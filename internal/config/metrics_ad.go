package config

import (
	"net"
	"strconv"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// MetricsPort is where a daemon serves its metrics, as ads of its node say it. The host
// is not in it: readers of an ad know the node, and believe no other host.
type MetricsPort struct {
	Daemon  string // "schedd"
	Port    uint16
	IsTLS   bool
	IsLocal bool // the port is reached on the node itself only
}

// DescribeMetrics adds to the ad of a daemon the ports of metrics of its node. startd is
// the name of the execute node that the ad describes, empty for other ads. Each ad has
// the ports of all daemons of the node: a collector and the web daemon have no ads.
func (n *Node) DescribeMetrics(ad *classad.Ad, startd string) {
	var list []classad.Value
	for _, daemon := range []string{"collector", "negotiator", "schedd", "startd", "web", "accountant",
		"checkpoint_server"} {
		host, port, err := net.SplitHostPort(n.MetricsAddress(daemon, startd))
		number, _ := strconv.ParseUint(port, 10, 16)
		if err != nil || number == 0 {
			continue
		}
		isTLS := n.TLS != nil
		if daemon == "web" {
			isTLS = n.Web != nil && n.Web.Certificate != ""
		}
		one := classad.New()
		one.SetString("Daemon", daemon)
		one.SetInt("Port", int64(number))
		one.SetBool("TLS", isTLS)
		one.SetBool("Local", isLoopback(net.JoinHostPort(host, port)))
		list = append(list, classad.AdOf(one))
	}
	if len(list) > 0 {
		ad.SetString(roost.AttrMachine, n.Name)
		ad.SetValue(roost.AttrMetricsPorts, classad.ListValue(list...))
	}
}

// maxMetricsPorts bounds what is read of one ad.
const maxMetricsPorts = 16

// MetricsPortsOf returns the ports of metrics in an ad. What is none is left out.
func MetricsPortsOf(ad *classad.Ad) (ports []MetricsPort) {
	list, _ := ad.Eval(roost.AttrMetricsPorts, nil).Elements(nil)
	for _, v := range list[:min(len(list), maxMetricsPorts)] {
		one, ok := v.Ad()
		if !ok {
			continue
		}
		p := MetricsPort{}
		p.Daemon, _ = one.Str("Daemon")
		number, _ := one.Int("Port")
		p.IsTLS, _ = one.Bool("TLS")
		p.IsLocal, _ = one.Bool("Local")
		if p.Daemon == "" || len(p.Daemon) > 32 || !isHostName(p.Daemon) || number < 1 || number > 65535 {
			continue
		}
		p.Port = uint16(number)
		ports = append(ports, p)
	}
	return ports
}
