package dns

import (
	"math/rand/v2"
	"net/netip"
	"strings"
	"time"

	"github.com/miekg/dns"

	"github.com/roost-batch/roost/collector/names"
)

type udpHandler struct{ *Server }

// ServeDNS answers a query over UDP.
func (h udpHandler) ServeDNS(w dns.ResponseWriter, query *dns.Msg) {
	if h.sources.isOver(time.Now(), w.RemoteAddr()) {
		h.count(limited)
		return
	}
	reply := h.answer(query, maxUDPRecords)
	size := minUDP
	if o := query.IsEdns0(); o != nil {
		size = min(max(int(o.UDPSize()), minUDP), maxUDP)
	}
	if reply.Len() > size {
		reply.Truncate(size)
	}
	h.send(w, reply)
}

type tcpHandler struct{ *Server }

// ServeDNS answers a query over TCP.
func (h tcpHandler) ServeDNS(w dns.ResponseWriter, query *dns.Msg) {
	if h.sources.isOver(time.Now(), w.RemoteAddr()) {
		h.count(limited)
		w.Close()
		return
	}
	reply := h.answer(query, maxTCPRecords)
	if reply.Len() > dns.MaxMsgSize {
		reply.Truncate(dns.MaxMsgSize)
		reply.Truncated = false // there is no longer way to ask for the addresses that are left out
	}
	h.send(w, reply)
}

func (s *Server) send(w dns.ResponseWriter, reply *dns.Msg) {
	if err := w.WriteMsg(reply); err != nil {
		s.config.Log.Debug("dns: an answer cannot be sent", "to", w.RemoteAddr(), "err", err)
	}
}

// answer returns the reply to a query with at most most service records.
func (s *Server) answer(query *dns.Msg, most int) *dns.Msg {
	reply := new(dns.Msg)
	reply.SetReply(query)
	reply.Compress = true
	if o := query.IsEdns0(); o != nil {
		reply.SetEdns0(maxUDP, false)
		if o.Version() != 0 {
			reply.Rcode = dns.RcodeBadVers
			s.count(refused)
			return reply
		}
	}
	q := query.Question[0] // exactly one: the library refuses others
	name := strings.ToLower(q.Name)
	a := names.Answer{}
	if q.Qclass == dns.ClassINET && q.Qtype != dns.TypeAXFR && q.Qtype != dns.TypeIXFR {
		a = s.config.Zone.Lookup(name, recordType(q.Qtype), most, rand.IntN)
	}
	reply.Authoritative = a.Status != names.NotInZone
	switch a.Status {
	case names.NotInZone:
		reply.Rcode = dns.RcodeRefused
		s.count(refused)
		return reply
	case names.NoName:
		reply.Rcode = dns.RcodeNameError
		s.count(noName)
	case names.NameIsOrigin:
		s.answerOrigin(reply, q)
	case names.NameExists:
		addRecords(reply, q, a)
	}
	if len(reply.Answer) > 0 {
		s.count(answered)
		return reply
	}
	if a.Status != names.NoName {
		s.count(noData)
	}
	reply.Ns = []dns.RR{s.startOfAuthority(s.config.Zone.Origin())}
	return reply
}

func recordType(t uint16) names.RecordType {
	switch t {
	case dns.TypeA:
		return names.IPv4Records
	case dns.TypeAAAA:
		return names.IPv6Records
	case dns.TypeSRV:
		return names.ServiceRecords
	case dns.TypeTXT:
		return names.TextRecords
	}
	return names.OtherRecords
}

// answerOrigin answers for the name of the zone. Its server is named after it: which
// collectors there are is in the delegation from the zone above.
func (s *Server) answerOrigin(reply *dns.Msg, q dns.Question) {
	switch q.Qtype {
	case dns.TypeSOA:
		reply.Answer = []dns.RR{s.startOfAuthority(q.Name)}
	case dns.TypeNS:
		reply.Answer = []dns.RR{&dns.NS{Hdr: header(q.Name, dns.TypeNS), Ns: s.config.Zone.Origin()}}
	}
}

func (s *Server) startOfAuthority(name string) dns.RR {
	origin := s.config.Zone.Origin()
	h := header(name, dns.TypeSOA)
	h.Ttl = negativeTTL
	return &dns.SOA{Hdr: h, Ns: origin, Mbox: "hostmaster." + origin, Serial: uint32(s.config.Zone.Version()),
		Refresh: 60, Retry: 10, Expire: 60, Minttl: negativeTTL}
}

func header(name string, t uint16) dns.RR_Header {
	return dns.RR_Header{Name: name, Rrtype: t, Class: dns.ClassINET, Ttl: recordTTL}
}

// addRecords adds the records of an answer. The owner of a record has the letters of the
// query, which resolvers compare.
func addRecords(reply *dns.Msg, q dns.Question, a names.Answer) {
	for _, address := range a.Addresses {
		reply.Answer = append(reply.Answer, addressRecord(q.Name, address))
	}
	for _, r := range a.Services {
		reply.Answer = append(reply.Answer, &dns.SRV{Hdr: header(q.Name, dns.TypeSRV), Priority: 0, Weight: r.Weight,
			Port: r.Port, Target: r.Target})
		reply.Extra = append(reply.Extra, addressRecord(r.Target, r.Address))
	}
	for _, text := range a.Text {
		reply.Answer = append(reply.Answer, &dns.TXT{Hdr: header(q.Name, dns.TypeTXT), Txt: []string{text}})
	}
}

func addressRecord(name string, a netip.Addr) dns.RR {
	if a.Is4() {
		return &dns.A{Hdr: header(name, dns.TypeA), A: a.AsSlice()}
	}
	return &dns.AAAA{Hdr: header(name, dns.TypeAAAA), AAAA: a.AsSlice()}
}
