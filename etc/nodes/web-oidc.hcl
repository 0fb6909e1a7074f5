# A submit node whose users log in to the pages by the OpenID provider of their university,
# here a Keycloak. In the realm, make a client "roost" with the standard flow, client
# authentication, PKCE method S256, and the redirect address
#
#   https://roost.example.org:9780/login/university/callback
#
# and put its secret into oidc.secret. roost-web(8) tells what the web daemon may do.

name        = "login1"
collectors  = ["10.0.0.1:9701"]
negotiators = ["10.0.0.1:9702"]

tls {
  ca          = "/etc/roost/ca.pem"
  certificate = "/etc/roost/node.pem"
  key         = "/etc/roost/node.key"
}

schedd {
  listen = ["10.0.0.5:9705"]
}

web {
  listen      = ["10.0.0.5:9780"]
  url         = "https://roost.example.org:9780"
  certificate = "/etc/roost/web.pem"
  key         = "/etc/roost/web.key"
  user        = "roost-web"

  oidc "university" {
    title       = "the University"
    issuer      = "https://sso.example.org/realms/science"
    client      = "roost"
    secret_file = "/etc/roost/oidc.secret"   # mode 0600, of root: the schedd reads it
    claim       = "sub"                      # never given to another person
    accounts    = "/etc/roost/oidc.accounts" # lines of "f81d4fae-7dec-11d0-a765-00a0c91e6bf6 ada"
  }
}
