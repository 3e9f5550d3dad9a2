terraform {
  required_providers {
    google = {
      source  = "hashicorp/google"
      version = "~> 6.50"
    }
    helm = {
      source  = "hashicorp/helm"
      version = "~> 3.1"
    }
    kubernetes = {
      source  = "hashicorp/kubernetes"
      version = "~> 2.38"
    }
  }
}

provider "google" {
  region = local.cluster.region
}

provider "helm" {
  kubernetes = {
    "cluster_ca_certificate" = module.kubernetes.ca_certificate
    "exec" = {
      "api_version" = module.kubernetes.exec.api_version
      "args"        = module.kubernetes.exec.args
      "command"     = module.kubernetes.exec.command
    }
    "host" = module.kubernetes.endpoint
  }
}

provider "kubernetes" {
  cluster_ca_certificate = module.kubernetes.ca_certificate
  host                   = module.kubernetes.endpoint

  exec {
    api_version = module.kubernetes.exec.api_version
    args        = module.kubernetes.exec.args
    command     = module.kubernetes.exec.command
  }
}
