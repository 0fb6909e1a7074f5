# A linear model in R, in a container image, upon a table of the submit node. The table is
# sent with the job, and the plot comes back.

job "model" {
  image    = "docker://docker.io/rocker/r-ver:4.4.2"
  inputs   = ["r-image.hcl"] # here stands your table
  outputs  = ["model.pdf"]
  transfer = "always"
  memory   = "1GiB"

  script = <<-EOT
    #!/usr/bin/env -S Rscript --vanilla
    fit <- lm(dist ~ speed, data = cars)
    print(summary(fit))
    pdf("model.pdf")
    plot(cars)
    abline(fit)
  EOT
}
