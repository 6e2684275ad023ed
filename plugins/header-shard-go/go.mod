module header-shard

go 1.24
