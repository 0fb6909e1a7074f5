package route

import (
	"net/http"
	"time"
)

// Zone is in which time zone a reader wants the times of pages.
type Zone string

// The zones. Without a choice times are in UTC, and a script writes them in the zone of
// the browser.
const (
	AnyZone   Zone = ""
	UTCZone   Zone = "utc"
	LocalZone Zone = "local" // of the browser, and without scripts of the web daemon's host
)

// ParseZone returns the zone of a word; any other word is no choice.
func ParseZone(word string) Zone {
	if z := Zone(word); z == UTCZone || z == LocalZone {
		return z
	}
	return AnyZone
}

// Text says in which zone the times of a page are, as it comes from the server.
func (z Zone) Text() string {
	if z != LocalZone {
		return "UTC"
	}
	name, _ := time.Now().Zone()
	return "the zone of this server, " + name
}

// Other returns the zone that the switch of a page leads to.
func (z Zone) Other() Zone {
	if z == UTCZone {
		return LocalZone
	}
	return UTCZone
}

// OtherText is the label of that switch.
func (z Zone) OtherText() string {
	if z == UTCZone {
		return "Show local time"
	}
	return "Show UTC"
}

// ZoneRoute is the route of the switch between UTC and local time. The choice is in a
// cookie of the browser, and gives no rights.
func ZoneRoute() Route {
	return Route{Method: "POST", Page: "/zone", Summary: "choose between UTC and local time on pages",
		Rights: OwnSession, Class: Writes, Changes: true, Handle: chooseZone}
}

// zoneLife is for how long a browser keeps the choice.
const zoneLife = 365 * 24 * time.Hour

// chooseZone stores the choice and leads back to the page that it was made on.
func chooseZone(c *Call) error {
	var zone Zone
	var back string
	if err := c.Decode(nil, func(value func(string) string) {
		zone, back = ParseZone(value("zone")), value("back")
	}); err != nil {
		return err
	}
	if zone == AnyZone {
		return NewProblem(http.StatusBadRequest, "zone is neither utc nor local", "use the switch below a page")
	}
	http.SetCookie(c.Writer, &http.Cookie{Name: c.table.zoneCookie(), Value: string(zone), Path: "/", HttpOnly: true,
		Secure: c.table.Secure, SameSite: http.SameSiteStrictMode, MaxAge: int(zoneLife.Seconds())})
	if !isOwnPath(back) {
		back = "/"
	}
	return c.Redirect(back)
}

// zoneCookie is the name of the cookie with the zone of times.
func (t *Table) zoneCookie() string { return t.cookie + "-zone" }

// Zone returns in which zone the reader wants the times of pages.
func (c *Call) Zone() Zone {
	cookie, err := c.Request.Cookie(c.table.zoneCookie())
	if err != nil {
		return AnyZone
	}
	return ParseZone(cookie.Value)
}

// Here returns the address of the page for a form that leads back to it.
func (c *Call) Here() string {
	if IsSafe(c.Request.Method) {
		return c.Request.URL.RequestURI()
	}
	return "/"
}
