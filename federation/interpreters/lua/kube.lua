-- The library `kube` of Karmada's interpreters, for what pods need and what they name.
local quantity = ...
local error, ipairs, pairs, select, sort, tostring, type, unpack =
  error, ipairs, pairs, select, table.sort, tostring, type, unpack

local SIDECAR = "Always"
-- Where the sources of volumes name a Secret.
local SECRETS = {
  secret = { "secretName" },
  azureFile = { "secretName" },
  cephfs = { "secretRef", "name" },
  cinder = { "secretRef", "name" },
  csi = { "nodePublishSecretRef", "name" },
  flexVolume = { "secretRef", "name" },
  iscsi = { "secretRef", "name" },
  rbd = { "secretRef", "name" },
  scaleIO = { "secretRef", "name" },
  storageos = { "secretRef", "name" },
}

local function at(holder, ...)
  for number = 1, select("#", ...) do
    if type(holder) ~= "table" then return nil end
    holder = holder[(select(number, ...))]
  end
  return holder
end

local function each(holder, ...)
  local found = at(holder, ...)
  return ipairs(type(found) == "table" and found or {})
end

local function check(value, kind, name, number)
  if type(value) ~= kind then
    error("bad argument #" .. number .. " to '" .. name .. "' (" .. kind .. " expected, got " .. type(value) .. ")", 3)
  end
end

local function parse(value, name, number)
  if value == nil then return quantity.zero() end
  if type(value) == "number" then value = tostring(value) end
  check(value, "string", name, number)
  return quantity.parse(value)
end

local function requests_of(container)
  local found = {}
  for name, value in pairs(at(container, "resources", "requests") or {}) do
    found[name] = parse(value, "requests", 1)
  end
  return found
end

local function add_all(sum, more)
  for name, value in pairs(more) do
    sum[name] = sum[name] and quantity.add(sum[name], value) or value
  end
  return sum
end

local function raise_to(sum, least)
  for name, value in pairs(least) do
    if not sum[name] or quantity.is_more(value, sum[name]) then sum[name] = value end
  end
end

local function requests_of_init(spec)
  local most, sidecars = {}, {}
  for _, container in each(spec, "initContainers") do
    local own = requests_of(container)
    if at(container, "restartPolicy") == SIDECAR then
      add_all(sidecars, own)
      raise_to(most, sidecars)
    else
      raise_to(most, add_all(own, sidecars))
    end
  end
  return most, sidecars
end

local function requests_of_pod(spec)
  local most, sum = requests_of_init(spec)
  for _, container in each(spec, "containers") do add_all(sum, requests_of(container)) end
  raise_to(sum, most)
  for name, value in pairs(requests_of(spec)) do sum[name] = value end
  for name, value in pairs(at(spec, "overhead") or {}) do add_all(sum, { [name] = parse(value, "overhead", 1) }) end
  return sum
end

local function written(requests)
  local found, is_any = {}, false
  for name, value in pairs(requests) do
    found[name], is_any = quantity.write(value), true
  end
  return is_any and found or nil
end

local function claim_of(spec)
  local claim = {
    hardNodeAffinity = at(spec, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"),
    nodeSelector = at(spec, "nodeSelector"),
    tolerations = at(spec, "tolerations"),
  }
  for _ in pairs(claim) do return claim end
end

local function add_name(names, kind, value)
  if type(value) == "string" and value ~= "" then
    names[kind] = names[kind] or {}
    names[kind][value] = true
  end
end

local function add_volume(names, volume)
  add_name(names, "ConfigMap", at(volume, "configMap", "name"))
  add_name(names, "PersistentVolumeClaim", at(volume, "persistentVolumeClaim", "claimName"))
  for source, path in pairs(SECRETS) do
    add_name(names, "Secret", at(volume, source, unpack(path)))
  end
  for _, source in each(volume, "projected", "sources") do
    add_name(names, "ConfigMap", at(source, "configMap", "name"))
    add_name(names, "Secret", at(source, "secret", "name"))
  end
end

local function add_container(names, container)
  for _, source in each(container, "envFrom") do
    add_name(names, "ConfigMap", at(source, "configMapRef", "name"))
    add_name(names, "Secret", at(source, "secretRef", "name"))
  end
  for _, variable in each(container, "env") do
    add_name(names, "ConfigMap", at(variable, "valueFrom", "configMapKeyRef", "name"))
    add_name(names, "Secret", at(variable, "valueFrom", "secretKeyRef", "name"))
  end
end

local function names_of(spec)
  local names = {}
  local account = at(spec, "serviceAccountName")
  if account ~= "default" then add_name(names, "ServiceAccount", account) end
  for _, reference in each(spec, "imagePullSecrets") do add_name(names, "Secret", at(reference, "name")) end
  for _, volume in each(spec, "volumes") do add_volume(names, volume) end
  for _, field in ipairs { "containers", "initContainers", "ephemeralContainers" } do
    for _, container in each(spec, field) do add_container(names, container) end
  end
  return names
end

local kube = {}

function kube.resourceAdd(...)
  local sum = quantity.zero()
  for number = 1, select("#", ...) do
    sum = quantity.add(sum, parse(select(number, ...), "resourceAdd", number))
  end
  return quantity.write(sum)
end

function kube.getResourceQuantity(text)
  return quantity.value_of(parse(text, "getResourceQuantity", 1))
end

function kube.accuratePodRequirements(template)
  check(template, "table", "accuratePodRequirements", 1)
  local spec = at(template, "spec")
  local claim, requests = claim_of(spec), written(requests_of_pod(spec))
  if not (claim or requests) then return nil end
  return { nodeClaim = claim, resourceRequest = requests, priorityClassName = at(spec, "priorityClassName") }
end

function kube.getPodDependencies(template, namespace)
  check(template, "table", "getPodDependencies", 1)
  local found, names = {}, names_of(at(template, "spec"))
  for _, kind in ipairs { "ConfigMap", "Secret", "ServiceAccount", "PersistentVolumeClaim" } do
    local sorted = {}
    for name in pairs(names[kind] or {}) do sorted[#sorted + 1] = name end
    sort(sorted)
    for _, name in ipairs(sorted) do
      found[#found + 1] = { apiVersion = "v1", kind = kind, namespace = tostring(namespace or "default"), name = name }
    end
  end
  return found
end

return kube
