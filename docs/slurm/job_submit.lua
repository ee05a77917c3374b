-- Let jobs that are handed over to pilotfish wait for it for a few minutes, by a begin time that Slurm enforces.
--
-- Rule: the script sets a begin time and records it in the comment (`pilotfish:hold=SECONDS`, which shows pilotfish
-- that the begin time is not the user's) with a checksum of the batch script (`script=LETTERS`, by which pilotfish
-- recognises jobs that run the same script), and nothing else. It does not hold kinds of jobs that gain nothing from
-- pilotfish. If in doubt, it leaves the job as the user wrote it. An error in this script never refuses a job. It runs
-- under the controller's locks, so nothing that it does can block: of the folder of pilotfish, whose account can replace
-- every file there by one that never opens, it only asks which names exist.
--
-- Put it next to slurm.conf, then add `JobSubmitPlugins=lua` there and run `scontrol reconfigure`. A site with a
-- job_submit.lua of its own copies everything above `slurm_job_submit` into it, and calls `pilotfish_hold` at the end of
-- its own `slurm_job_submit`.
-- To undo: first remove `lua` from JobSubmitPlugins and run `scontrol reconfigure`, then remove the file. Never remove
-- the file first: a running slurmctld continues with what it has read, but cannot start again without the file.
-- Source: https://slurm.schedmd.com/job_submit_plugins.html; Slurm 22.05, which does not pass a job's deadline.

local PARTITIONS = {}     -- whose jobs are handed over, such as {shared = true, batch = true}; a job of another one is
                          -- handed over if it has the word `pilotfish` in its comment
local HOLD_S = 600        -- for how long a job waits for pilotfish at most
local SPREAD_S = 120      -- holds are shorter by up to this, so that those of many jobs do not all end at once
local ALIVE = "/run/pilotfish/heartbeat"  -- what a live daemon keeps: while it is absent, as in shadow, nothing is held;
                          -- "": do not look
local UNHELD = "/run/pilotfish/unheld"  -- begins the names of files for kinds of jobs that gain nothing; "": none
local ASKED = "/run/pilotfish-asked/job" -- opened for each job that is offered, which pilotfish notices. Only root may be
                          -- able to write to its folder, since opening a file can block. "": none
local LONGEST = 1024      -- bytes: Slurm refuses a job whose comment has as many
local READ = 16384        -- bytes of a script that its checksum covers, so that a long one takes a millisecond, too

local turn = 0

-- Whether a name exists, whatever it is. rename(2) onto the same name changes, opens and follows nothing.
local function exists(path)
   local renamed, _, code = os.rename(path, path)
   return renamed or code ~= 2 -- ENOENT
end

local function is_served()
   return ALIVE == "" or exists(ALIVE)
end

-- A checksum of the script and its arguments, in eight letters: pilotfish drops long numbers from names.
local function checksum(job)
   local words = {job.script}
   for _, word in ipairs(job.argv or {}) do words[#words + 1] = word end
   local text = table.concat(words, "\0")
   local sum, letters = #text, {}
   for place = 1, math.min(#text, READ) do sum = (sum * 31 + text:byte(place)) % 4294967296 end
   for place = 1, 8 do
      letters[place] = string.char(97 + sum % 16)
      sum = math.floor(sum / 16)
   end
   return table.concat(letters)
end

-- Return the comment with the hold in it; nil if pilotfish could not read it back, or if we may not change it.
local function with_hold(comment, hold)
   local _, times = comment:gsub("pilotfish", "")
   if times == 0 then
      return comment .. (comment == "" and "" or " ") .. "pilotfish:hold=" .. hold
   end
   local before, rest, after = (" " .. comment .. " "):match("^(.*%s)pilotfish([%w:=;,./%%_-]*)(%s.*)$")
   if times > 1 or not rest or not (rest == "" or rest:find("^:")) or rest:find("[:;]hold=") or rest:find("[:;]until=")
      or rest:find("[:;]key=") then
      return nil
   end
   local between = rest == "" and ":" or rest == ":" and "" or ";"
   return (before .. "pilotfish" .. rest .. between .. "hold=" .. hold .. after):sub(2, -2)
end

-- Whether pilotfish has found that placing such jobs (of this user, with this name) gains nothing.
local function is_unheld(job)
   local name = (job.name or ""):gsub("[^%w_-]", function(letter) return string.format("%%%02X", letter:byte()) end)
   return UNHELD ~= "" and #name <= 200 and exists(string.format("%s.%d.%s", UNHELD, job.user_id, name))
end

local function note_asked()
   local file = ASKED ~= "" and io.open(ASKED)
   if file then file:close() end
end

local function is_set(text)
   return text ~= nil and text ~= ""
end

local function is_offered(job, partitions)
   local name = job.partition
   for each, partition in pairs(partitions or {}) do
      if not name and partition.flag_default ~= 0 then name = each end
   end
   return PARTITIONS[name or ""] or (job.comment or ""):find("pilotfish", 1, true)
end

-- Only batch jobs that would start as soon as they can: one that begins later, waits for others, has a reservation or
-- is held, and members of arrays and heterogeneous jobs, stay as they are.
local function is_plain(job)
   return job.script ~= nil and job.begin_time == 0 and job.priority ~= 0 and not is_set(job.dependency)
      and not is_set(job.reservation) and not is_set(job.array_inx) and job.het_job_offset == slurm.NO_VAL
      and job.immediate == 0 and (job.deadline or 0) == 0
end

local function try_to_hold(job, partitions)
   if not (is_offered(job, partitions) and is_plain(job) and is_served()) then return end
   note_asked()
   if is_unheld(job) then -- it may be placed while it waits, but starts without that, too
      local comment = job.comment or ""
      if not comment:find("pilotfish", 1, true) and #comment < LONGEST - 26 then
         job.comment = comment .. (comment == "" and "" or " ") .. "pilotfish:script=" .. checksum(job)
      end
      return
   end
   turn = (turn + 37) % 101 -- evenly spread, also over jobs that are submitted in one second
   local hold = math.floor(HOLD_S - SPREAD_S * turn / 101)
   local comment = job.comment or ""
   local script = comment:find("[:;]script=") and "" or ";script=" .. checksum(job)
   comment = with_hold(comment, hold .. (#comment < LONGEST - 36 and script or ""))
   if comment and #comment < LONGEST then
      job.begin_time = os.time() + hold
      job.comment = comment
   end
end

function pilotfish_hold(job, partitions)
   local ok, problem = pcall(try_to_hold, job, partitions)
   if not ok then slurm.log_error("pilotfish: %s", tostring(problem)) end
end

function slurm_job_submit(job, partitions, uid)
   pilotfish_hold(job, partitions)
   return slurm.SUCCESS
end

function slurm_job_modify(job, record, partitions, uid)
   return slurm.SUCCESS
end

return slurm.SUCCESS
